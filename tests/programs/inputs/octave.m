# octave.m: runs the tests that Octave carries within its own functions, and fails if one fails.
names = {"sort", "cellfun", "strrep", "regexp", "str2num", "inv", "chol", "qr", "svd", "fft", ...
    "filter", "conv2", "sparse", "lu", "schur", "accumarray", "interp1", "polyfit", ...
    "containers.Map", "strsplit", "strjoin", "num2str", "cell2mat", "struct2cell", ...
    "circshift", "kron", "unique"};
passed = 0;
for index = 1:numel (names)
  [good, all] = test (names{index}, "quiet");
  if good != all
    error ("octave.m: %s: %d of %d tests passed", names{index}, good, all);
  endif
  passed += good;
endfor
printf ("%d tests passed\n", passed);
