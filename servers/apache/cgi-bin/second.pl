#!/usr/bin/perl
# Prints its environment, so that each request costs what a small CGI script costs.
use strict;
use warnings;

print "Content-Type: text/html\n\n";
print "$_ --> $ENV{$_}<br>" for sort keys %ENV;
