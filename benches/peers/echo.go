// The service weigh.v1.Echo (serve PORT), or a client of one (call ADDRESS), by grpc-go.
// Its messages are written as well-known types of the same encoding, so that no schema is compiled.
package main

import (
	"context"
	"fmt"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	pb "google.golang.org/protobuf/types/known/wrapperspb"
	"io"
	"net"
	"os"
	"time"
)

type any_ = interface{}

func check(ok bool, what string, err error) {
	if !ok || (err != nil && err != io.EOF) {
		fmt.Println(what, err)
		os.Exit(1)
	}
}
func collect(_ any_, s grpc.ServerStream) error {
	for n := uint64(0); ; n++ {
		m := &pb.BytesValue{}
		if err := s.RecvMsg(m); err == io.EOF {
			return s.SendMsg(&pb.UInt64Value{Value: n})
		} else if err != nil {
			return err
		}
	}
}
func both(_ any_, s grpc.ServerStream) error {
	for {
		m := &pb.BytesValue{}
		if err := s.RecvMsg(m); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if err := s.SendMsg(m); err != nil {
			return err
		}
	}
}
func paced(_ any_, s grpc.ServerStream) error {
	if err := s.RecvMsg(&emptypb.Empty{}); err != nil {
		return err
	}
	for n := 0; n < 5; n++ {
		if err := s.SendMsg(&pb.BytesValue{Value: []byte("paced")}); err != nil {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
	return nil
}
func unary(_ any_, _ context.Context, read func(any_) error, _ grpc.UnaryServerInterceptor) (any_, error) {
	m := &pb.BytesValue{}
	return m, read(m)
}
func main() {
	if os.Args[1] == "serve" {
		l, err := net.Listen("tcp", "127.0.0.1:"+os.Args[2])
		check(true, "listen", err)
		s := grpc.NewServer()
		s.RegisterService(&grpc.ServiceDesc{ServiceName: "weigh.v1.Echo", HandlerType: (*any_)(nil), Methods: []grpc.MethodDesc{{MethodName: "Unary", Handler: unary}},
			Streams: []grpc.StreamDesc{{StreamName: "Collect", Handler: collect, ClientStreams: true}, {StreamName: "Paced", Handler: paced, ServerStreams: true},
				{StreamName: "Both", Handler: both, ClientStreams: true, ServerStreams: true}}}, struct{}{})
		check(true, "serve", s.Serve(l))
		return
	}
	c, err := grpc.NewClient(os.Args[2], grpc.WithTransportCredentials(insecure.NewCredentials()))
	check(true, "client", err)
	ctx, end := context.WithTimeout(context.Background(), 10*time.Second)
	defer end()
	for _, n := range []int{0, 5, 1000000} {
		m := &pb.BytesValue{}
		err = c.Invoke(ctx, "/weigh.v1.Echo/Unary", &pb.BytesValue{Value: make([]byte, n)}, m)
		check(len(m.Value) == n, "unary", err)
	}
	err = c.Invoke(ctx, "/weigh.v1.Echo/Missing", &pb.BytesValue{}, &pb.BytesValue{})
	check(status.Code(err) == codes.Unimplemented, "status", nil)
	stream := func(name string) grpc.ClientStream {
		s, err := c.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/weigh.v1.Echo/"+name)
		check(true, name, err)
		return s
	}
	s, sum := stream("Collect"), &pb.UInt64Value{}
	for n := 0; n < 100; n++ {
		check(true, "send", s.SendMsg(&pb.BytesValue{Value: make([]byte, 5000)}))
	}
	s.CloseSend()
	err = s.RecvMsg(sum)
	check(sum.Value == 100, "collect", err)
	s = stream("Both")
	for n := 0; n < 100; n++ {
		m := &pb.BytesValue{}
		s.SendMsg(&pb.BytesValue{Value: make([]byte, n*50)})
		err = s.RecvMsg(m)
		check(len(m.Value) == n*50, "both", err)
	}
	s.CloseSend()
	check(s.RecvMsg(&pb.BytesValue{}) == io.EOF, "end of both", nil)
	s, asked := stream("Paced"), &emptypb.Empty{}
	asked.ProtoReflect().SetUnknown([]byte{8, 5, 16, 100, 24, 100})
	s.SendMsg(asked)
	s.CloseSend()
	got := 0
	for ; s.RecvMsg(&pb.BytesValue{}) == nil; got++ {
	}
	check(got == 5, "paced", nil)
}
