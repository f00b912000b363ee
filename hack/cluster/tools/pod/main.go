// The program in the images of the real node's tests: it greets and waits, and asks for names and pages. A binary without
// a C library, so that it is all that an image needs.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run does one of: nothing but waiting (no argument), serve ADDRESS, lookup NAME, get URL.
func run(args []string) error {
	switch {
	case len(args) == 0:
		fmt.Printf("hello from %s %s\n", runtime.GOOS, runtime.GOARCH)
		stop := make(chan os.Signal, 1)
		signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
		<-stop
		return nil
	case len(args) == 2 && args[0] == "serve":
		name, _ := os.Hostname()
		return http.ListenAndServe(args[1], http.HandlerFunc(func(response http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(response, "hello from %s\n", name)
		}))
	case len(args) == 2 && args[0] == "lookup":
		addresses, err := net.LookupHost(args[1])
		if err == nil {
			fmt.Println(strings.Join(addresses, " "))
		}
		return err
	case len(args) == 2 && args[0] == "get":
		client := http.Client{Timeout: 5 * time.Second}
		response, err := client.Get(args[1])
		if err != nil {
			return err
		}
		defer response.Body.Close()
		_, err = io.Copy(os.Stdout, response.Body)
		return err
	}
	return fmt.Errorf("unknown arguments: %s", strings.Join(args, " "))
}
