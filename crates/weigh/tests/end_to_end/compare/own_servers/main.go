package main

import (
	"bufio"
	"net"
	"os"
)

func serve(c net.Conn) {
	defer c.Close()
	lines := bufio.NewScanner(c)
	for lines.Scan() {
		if lines.Text() == "" {
			c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello\n"))
		}
	}
}

func main() {
	l, err := net.Listen("tcp", "127.0.0.1:"+os.Args[1])
	if err != nil {
		panic(err)
	}
	for {
		if c, err := l.Accept(); err == nil {
			go serve(c)
		}
	}
}
