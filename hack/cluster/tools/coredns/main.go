// CoreDNS with the plugins that the real node's Corefile names. All of its plugins bring the libraries of
// every cloud, and take six times as long to build.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/hosts"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/template"
)

func main() {
	// A query passes the plugins in this order, whatever the Corefile's.
	dnsserver.Directives = []string{"ready", "errors", "kubernetes", "hosts", "template"}
	coremain.Run()
}
