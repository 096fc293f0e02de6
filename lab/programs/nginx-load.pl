# nginx-load.pl SOCKET REQUESTS PATH...: sends the requests for the paths in turn to the server at
# the Unix socket, in batches of which each has a connection of its own. Prints for each path how
# many requests were answered with 200 OK and how many bytes of text came.
use strict;
use warnings;
use Socket;
use constant BATCH => 50;

my ($socket, $requests, @paths) = @ARGV;

sub connect_to_server {
    for (1 .. 1000) {
        socket my $server, PF_UNIX, SOCK_STREAM, 0 or die "nginx-load.pl: socket: $!\n";
        return $server if connect $server, pack_sockaddr_un($socket);
        select undef, undef, undef, 0.005;
    }
    die "nginx-load.pl: no server at $socket: $!\n";
}

# Sends `number` requests at once and returns all that comes back.
sub run_batch {
    my ($path, $number) = @_;
    my $request = "GET $path HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n";
    my $batch = "$request\r\n" x ($number - 1) . "${request}Connection: close\r\n\r\n";
    my $server = connect_to_server();
    (syswrite $server, $batch) == length $batch or die "nginx-load.pl: cannot send: $!\n";
    my $answer = '';
    1 while sysread $server, $answer, 1 << 20, length $answer;
    return $answer;
}

for my $path (@paths) {
    my ($answers, $bytes) = (0, 0);
    for (my $left = $requests / @paths; $left > 0; $left -= BATCH) {
        my $answer = run_batch($path, $left < BATCH ? $left : BATCH);
        $answers += () = $answer =~ m{HTTP/1\.1 200 OK\r\n}g;
        $bytes += length $answer;
    }
    print "$path: $answers answers, $bytes bytes\n";
}
