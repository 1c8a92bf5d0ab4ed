// The client: starts the language server of the compiler, and leaves the rest to it.
"use strict";

const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = function () {
    const [command, ...args] = workspace.getConfiguration("texpr").get("command");
    const server = { command, args };
    client = new LanguageClient("texpr", "texpr", server, { documentSelector: [{ language: "te" }] });
    return client.start();
};

exports.deactivate = function () {
    return client && client.stop();
};
