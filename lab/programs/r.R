# r.R ROUNDS: data frames, models, strings, sorting and closures; prints figures of each round.
rounds <- as.integer(commandArgs(trailingOnly = TRUE)[1])
set.seed(20)
for (round in seq_len(rounds)) {
    frame <- data.frame(group = sample(letters, 20000, TRUE), x = rnorm(20000))
    frame$y <- 3 * frame$x + rnorm(20000)
    means <- aggregate(cbind(x, y) ~ group, frame, mean)
    model <- lm(y ~ x + group, frame)
    words <- vapply(seq_len(5000), function(i) paste(rev(strsplit(paste0("word", i), "")[[1]]),
                                                     collapse = ""), "")
    table <- tapply(nchar(gsub("[0-5]", "ab", words)), substr(words, 1, 1), sum)
    tree <- lapply(seq_len(2000), function(i) list(id = i, children = as.list(seq_len(i %% 7))))
    cat(sprintf("%.10f %.8f %d %d %s\n", sum(means$y), coef(model)[["x"]], sum(table),
                length(unlist(tree)), sort(words)[1234]))
}
