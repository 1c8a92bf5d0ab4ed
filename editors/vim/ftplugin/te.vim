if exists("b:did_ftplugin") | finish | endif
let b:did_ftplugin = 1

setlocal comments=:-- commentstring=--\ %s
setlocal expandtab shiftwidth=4 softtabstop=4 textwidth=132
setlocal formatprg=texpr\ fmt\ -
let b:undo_ftplugin = "setlocal comments< commentstring< expandtab< shiftwidth< softtabstop< textwidth< formatprg<"
