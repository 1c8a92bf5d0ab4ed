autocmd BufNewFile,BufRead *.te setfiletype te
