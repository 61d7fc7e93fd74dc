# Stands in for kubectl and nomad, as far as their presets call them, and commits their known
# faults. Its folder has `log`, a line for each call, and takes the next fault from a file `fault`.
use strict;
use warnings;
use POSIX ();
use Time::HiRes qw(time sleep);

my ($folder, $engine, @words) = @ARGV;
open(my $log, '>>', "$folder/log") or die;
syswrite($log, "$engine @words\n");
my $line = "@words";

if ($engine eq 'kubectl' && $line !~ /\bexec\b/) {
    if ($line =~ /\brun\b/ && -e "$folder/refuse") {
        print STDERR "Error from server (Forbidden): pods is forbidden\n";
        exit 1;
    }
    print '{"status":{"podIP":"127.0.0.1","conditions":[{"type":"Ready","status":"True"}]}}'
        if $line =~ /\bget pod\b/;
    exit 0;
}
if ($engine eq 'nomad' && $line =~ /job allocs/) {
    print '[{"ID":"b-2","ClientStatus":"running"},{"ID":"a-1","ClientStatus":"complete"}]';
    exit 0;
}
if ($engine eq 'nomad' && $line =~ /alloc status/) {
    print '{"AllocatedResources":{"Shared":{"Networks":[{"IP":"127.0.0.1"}]}}}';
    exit 0;
}
# exec: what follows `--`, or the shell.
shift @words while @words && $words[0] ne '--' && $words[0] ne 'sh';
shift @words if @words && $words[0] eq '--';

pipe(my $in_read, my $in_write) or die;
pipe(my $out_read, my $out_write) or die;
my $child = fork();
if (!$child) {
    close $in_write; close $out_read;
    open(STDIN, '<&', $in_read); open(STDOUT, '>&', $out_write);
    close $in_read; close $out_write;
    POSIX::setsid();
    exec @words or POSIX::_exit(127);
}
close $in_read; close $out_write;

# The pipe's other end goes on without this program, as a process in a container does.
sub live_on {
    if (fork()) { POSIX::_exit(0) }
    POSIX::setsid();
    open(STDIN, '<', '/dev/null'); open(STDOUT, '>', '/dev/null'); open(STDERR, '>', '/dev/null');
    while (sysread($out_read, my $bytes, 65536)) { }
    POSIX::_exit(0);
}

my ($fault, $held_until, $held) = ('', 0, '');
my $cut_end = -e "$folder/cut-end";
my $has_input = 1;
while (1) {
    if (!$fault && -e "$folder/fault" && open(my $file, '<', "$folder/fault")) {
        $fault = <$file> // '';
        close $file;
        # One of several pipes takes it.
        $fault = '' unless unlink "$folder/fault";
        live_on() if $fault eq 'exit-0';
    }
    my $ready = '';
    vec($ready, fileno(STDIN), 1) = 1 if $has_input;
    vec($ready, fileno($out_read), 1) = 1;
    next if select($ready, undef, undef, 0.05) <= 0;
    if ($has_input && vec($ready, fileno(STDIN), 1)) {
        my $read = sysread(STDIN, my $bytes, 65536);
        if (!$read) {
            close $in_write; $has_input = 0;
        } elsif ($fault eq 'drop-input') {
            $fault = 'done';
        } else {
            syswrite($in_write, $bytes);
        }
    }
    if (vec($ready, fileno($out_read), 1)) {
        my $read = sysread($out_read, my $bytes, 65536);
        last if !$read;
        $bytes =~ s/^weigh< E.*\n//mg if $cut_end;
        if ($fault eq 'truncate') {
            syswrite(STDOUT, substr($bytes, 0, length($bytes) / 2));
            live_on();
        }
        if ($fault eq 'flip') {
            my $at = int(length($bytes) / 2);
            substr($bytes, $at, 1) = chr(ord(substr($bytes, $at, 1)) ^ 1);
            $fault = 'done';
        }
        if ($fault eq 'lose-output') { $bytes = ''; $fault = 'done' }
        if ($fault eq 'twice') { $bytes .= $bytes; $fault = 'done' }
        if ($fault eq 'hold') { $held .= $bytes; next }
        syswrite(STDOUT, $bytes);
    }
}
waitpid($child, 0);
exit($? >> 8);
