# frozen_string_literal: true

require 'sinatra/base'
require_relative 'store'

# A small Twitter: the newest posts, a user's timeline and profile, posting and following.
class App < Sinatra::Base
  set :views, File.join(__dir__, 'views')
  disable :sessions, :logging, :protection, :static, :show_exceptions

  STORE = Store.new(ENV.fetch('STORE_IP'), Integer(ENV.fetch('STORE_PORT')))

  # Without the store: what Sinatra and its server cost alone.
  get '/hello' do
    content_type 'text/plain'
    'Hello, world!'
  end

  get '/' do
    erb :posts, locals: { title: 'The newest posts', counts: nil, posts: STORE.newest }
  end

  get '/timeline/:user' do |user|
    erb :posts, locals: { title: "What #{user} reads", counts: nil, posts: STORE.timeline(user) }
  end

  get '/profile/:user' do |user|
    erb :posts, locals: { title: user, counts: STORE.counts(user), posts: STORE.posts(user) }
  end

  # Posts a text as a user; it is the whole body.
  post '/timeline/:user' do |user|
    text = request.body.read.strip
    halt 400, 'no text' if text.empty? || text.size > 140
    STORE.post(user, text)
    content_type 'text/plain'
    'posted'
  end

  post '/follow/:user/:other' do |user, other|
    STORE.follow(user, other)
    content_type 'text/plain'
    'followed'
  end
end
