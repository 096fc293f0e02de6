# perl-threads.pl THREADS ROUNDS: each thread is a copy of the whole interpreter, counts words in
# hashes of arrays, and passes its findings on through a queue. Prints a checksum of each thread.
use strict;
use warnings;
use threads;
use Thread::Queue;

my ($threads, $rounds) = @ARGV;
# A structure that every new thread copies.
my %shared_shape = map { $_ => [map { { name => "entry-$_" } } 1 .. 20] } 1 .. 300;
my $findings = Thread::Queue->new;

sub work {
    my ($number) = @_;
    my ($state, $sum) = ($number, 0);
    for my $round (1 .. $rounds) {
        my %positions;
        for my $position (1 .. 5000) {
            $state = ($state * 69069 + 12345) % 4294967296;
            push @{ $positions{ 'word' . int($state / 65536) % 700 } }, $position;
        }
        for my $word (sort keys %positions) {
            my $line = join ',', $word, @{ $positions{$word} };
            $sum = ($sum * 31 + unpack '%32C*', $line) % 4294967291;
        }
        $findings->enqueue({ thread => $number, round => $round, sum => $sum });
    }
    return $sum + keys %shared_shape;
}

for my $generation (1 .. 2) {
    my @crew = map { threads->create(\&work, $_) } 1 .. $threads;
    print join(' ', map { $_->join } @crew), "\n";
}
my ($count, $total) = (0, 0);
while (my $finding = $findings->dequeue_nb) {
    $count++;
    $total += $finding->{sum};
}
print "$count findings, total $total\n";
