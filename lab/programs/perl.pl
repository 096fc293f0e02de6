# perl.pl ROUNDS: words are counted, reversed, joined and sorted, in hashes of arrays, and a
# checksum of the result is printed. The words come from a fixed pseudo-random sequence.
use strict;
use warnings;

my $state = 20;

sub random {
    my ($below) = @_;
    $state = ($state * 69069 + 12345) % 4294967296;
    return int($state / 65536) % $below;
}

sub make_text {
    my ($count) = @_;
    my @words = map { join '', map { chr(97 + random(26)) } 1 .. 2 + random(9) } 1 .. $count / 4;
    return join ' ', map { $words[random(scalar @words)] . random(4) } 1 .. $count;
}

# Maps each word to the positions it stands at.
sub index_words {
    my ($text) = @_;
    my %positions;
    my $position = 0;
    for my $word (split / /, $text) {
        push @{ $positions{$word} }, $position++;
    }
    return \%positions;
}

my $sum = 0;
for my $round (1 .. $ARGV[0]) {
    my $text = make_text(20000);
    my $positions = index_words($text);
    my @lines = map { "$_:" . join ',', @{ $positions->{$_} } } sort keys %$positions;
    (my $changed = join "\n", @lines) =~ s/([a-z]+)(\d)/$2 . reverse $1/ge;
    my %by_length;
    push @{ $by_length{ length $_ } }, lc $_ for split /\n/, $changed;
    for my $length (sort { $a <=> $b } keys %by_length) {
        for my $line (@{ $by_length{$length} }) {
            $sum = ($sum * 31 + unpack '%32C*', $line) % 4294967291;
        }
    }
}
print "checksum $sum\n";
