# frozen_string_literal: true

# Empties the store and fills it: always with the same users, followers and posts.
require_relative 'store'

USERS = Integer(ARGV[2])
FOLLOWED = 10
POSTS = 5
WORDS = %w[river stone lamp window harbour paper orchard signal copper meadow winter bridge].freeze

store = Store.new(ARGV[0], Integer(ARGV[1]))
store.clear
USERS.times do |user|
  (1..[FOLLOWED, USERS - 1].min).each { |step| store.follow("u#{user}", "u#{(user + step) % USERS}") }
end
(USERS * POSTS).times do |number|
  words = (0...12).map { |n| WORDS[(number * 7 + n * n * 5 + n) % WORDS.size] }
  store.post("u#{number % USERS}", words.join(' '))
end
