# frozen_string_literal: true

require 'redis'

# What a small Twitter keeps in Redis: posts, who follows whom, and timelines.
#
#   post:N            a hash of author and text
#   posts             how many there are
#   all               numbers of the newest posts
#   posts:USER        numbers of a user's posts, newest first
#   timeline:USER     numbers of the posts of those whom a user follows, newest first
#   followers:USER, follows:USER   sets of names
class Store
  KEPT = 1000
  SHOWN = 20

  def initialize(host, port)
    @redis = Redis.new(host: host, port: port, driver: :ruby)
  end

  def clear
    @redis.flushdb
  end

  def follow(user, other)
    @redis.pipelined do |pipe|
      pipe.sadd("follows:#{user}", other)
      pipe.sadd("followers:#{other}", user)
    end
  end

  # Writes a post and puts it into the timelines of all who follow its author.
  def post(user, text)
    number = @redis.incr('posts')
    readers = @redis.smembers("followers:#{user}")
    @redis.pipelined do |pipe|
      pipe.mapped_hmset("post:#{number}", 'author' => user, 'text' => text)
      lists = ['all', "posts:#{user}", "timeline:#{user}"] + readers.map { |name| "timeline:#{name}" }
      lists.each do |list|
        pipe.lpush(list, number)
        pipe.ltrim(list, 0, KEPT - 1)
      end
    end
    number
  end

  def newest
    read('all')
  end

  def timeline(user)
    read("timeline:#{user}")
  end

  def posts(user)
    read("posts:#{user}")
  end

  # How many follow a user, and how many the user follows.
  def counts(user)
    @redis.pipelined do |pipe|
      pipe.scard("followers:#{user}")
      pipe.scard("follows:#{user}")
    end
  end

  private

  def read(list)
    numbers = @redis.lrange(list, 0, SHOWN - 1)
    @redis.pipelined do |pipe|
      numbers.each { |number| pipe.hgetall("post:#{number}") }
    end
  end
end
