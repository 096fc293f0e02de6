%% erlang_load.erl: `run(Processes)` starts many processes that build binaries and terms, store them
%% in a shared table and send on what they found. Prints checksums.
-module(erlang_load).
-export([run/1]).

run(Processes) ->
    Table = ets:new(table, [public, ordered_set, {write_concurrency, true}]),
    Self = self(),
    Workers = [spawn_link(fun() -> work(Self, Table, Number) end)
               || Number <- lists:seq(1, Processes)],
    Sums = [receive {Worker, Sum} -> Sum end || Worker <- Workers],
    Rows = ets:tab2list(Table),
    io:format("~b processes, ~b rows, sum ~b, table ~b~n",
              [Processes, length(Rows), lists:sum(Sums), erlang:phash2(Rows)]).

work(Parent, Table, Number) ->
    Binaries = [binary:copy(<<Number:32, Index:32>>, Index rem 97 + 1)
                || Index <- lists:seq(1, 300)],
    Text = iolist_to_binary(lists:join(<<",">>, Binaries)),
    Packed = zlib:compress(Text),
    Text = zlib:uncompress(Packed),
    Map = maps:from_list([{{Number, Index}, Index * Number} || Index <- lists:seq(1, 300)]),
    Sum = maps:fold(fun(_, Value, Total) -> Total + Value end, 0, Map),
    ets:insert(Table, {Number, erlang:crc32(Packed), term_to_binary(Map, [deterministic])}),
    Parent ! {self(), Sum}.
