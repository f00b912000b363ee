// Istio's sidecar injector, without the rest of istiod: the webhook's own code, with the templates and values that its chart renders.
// Arguments: the address, and the files of certificate, key, templates ("config") and values of the ConfigMap istio-sidecar-injector.
package main

import (
	"log"
	"net/http"
	"os"

	"istio.io/istio/pilot/pkg/model"
	"istio.io/istio/pkg/config/mesh"
	"istio.io/istio/pkg/config/mesh/meshwatcher"
	"istio.io/istio/pkg/kube/inject"
	"istio.io/istio/pkg/kube/multicluster"
)

func main() {
	if len(os.Args) != 6 {
		log.Fatal("usage: istio ADDRESS CERTIFICATE KEY CONFIG VALUES")
	}
	address, certificate, key := os.Args[1], os.Args[2], os.Args[3]
	watcher, err := inject.NewFileWatcher(os.Args[4], os.Args[5])
	if err != nil {
		log.Fatal(err)
	}
	config := mesh.DefaultMeshConfig()
	environment := &model.Environment{Watcher: meshwatcher.NewTestWatcher(config), ConfigStore: model.NewFakeStore()}
	environment.SetPushContext(&model.PushContext{ProxyConfigs: model.GetProxyConfigs(environment.ConfigStore, config)})
	mux := http.NewServeMux()
	_, err = inject.NewWebhook(inject.WebhookParameters{
		Watcher:      watcher,
		Env:          environment,
		Mux:          mux,
		MultiCluster: multicluster.NewFakeController(),
	})
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.ListenAndServeTLS(address, certificate, key, mux))
}
