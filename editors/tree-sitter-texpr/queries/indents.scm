; For Neovim, by the plugin nvim-treesitter.
[(block) (schedule) (instruction) (parameters) (arguments) (call_arguments)] @indent.begin
["}" ")"] @indent.branch @indent.end
(comment) @indent.ignore
