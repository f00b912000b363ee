// Flux's own server-side apply, without its controllers: what kustomize-controller and helm-controller do to the objects of a repository.
// It reads from standard input what Input says, and prints what Output says.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/polling"
	"github.com/fluxcd/pkg/ssa"
	"github.com/fluxcd/pkg/ssa/jsondiff"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/go-logr/logr"
)

// Input is one round of a Kustomization, or of the drift detection of a HelmRelease.
type Input struct {
	Kubeconfig string
	// What the repository has.
	Objects []map[string]any
	// The owner, which is the field manager: kustomize-controller or helm-controller.
	Owner string
	// diff: what is not as in the repository, as kustomize-controller finds it; apply: applies what is not; wait: until all is ready;
	// drift: what is not as in the repository, as helm-controller finds it.
	Do string
	// The JSON pointers of the field ignore of a HelmRelease's driftDetection.
	Ignore []string
}

// Output has an action for each object: unchanged, configured, created; for drift also what differs.
type Output struct {
	Actions map[string]string `json:"actions"`
	Changes any               `json:"changes,omitempty"`
}

func main() {
	ctrl.SetLogger(logr.Discard())
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	var input Input
	if err := json.NewDecoder(os.Stdin).Decode(&input); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", input.Kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 200, 200
	manager, direct, err := managerOf(config, input.Owner)
	if err != nil {
		return err
	}
	var objects []*unstructured.Unstructured
	for _, object := range input.Objects {
		objects = append(objects, &unstructured.Unstructured{Object: object})
	}

	output := Output{Actions: map[string]string{}}
	add := func(entry *ssa.ChangeSetEntry) { output.Actions[entry.Subject] = string(entry.Action) }
	switch input.Do {
	case "diff":
		for _, object := range objects {
			entry, _, _, err := manager.Diff(ctx, object, ssa.DefaultDiffOptions())
			if err != nil {
				return err
			}
			add(entry)
		}
	case "apply":
		changes, err := manager.ApplyAllStaged(ctx, objects, ssa.DefaultApplyOptions())
		if err != nil {
			return err
		}
		for _, entry := range changes.Entries {
			add(&entry)
		}
	case "wait":
		options := ssa.DefaultWaitOptions()
		options.Interval, options.Timeout = 500*time.Millisecond, time.Minute
		return manager.Wait(objects, options)
	case "drift":
		options := []jsondiff.ListOption{jsondiff.FieldOwner(input.Owner)}
		if len(input.Ignore) > 0 {
			options = append(options, jsondiff.IgnoreRules{{Paths: input.Ignore}})
		}
		found, err := jsondiff.UnstructuredList(ctx, direct, objects, options...)
		if err != nil {
			return err
		}
		for _, one := range found {
			output.Actions[one.DesiredObject.GetObjectKind().GroupVersionKind().Kind+" "+one.DesiredObject.GetName()] = string(one.Type)
		}
		output.Changes = found
	default:
		return fmt.Errorf("no such thing to do: %q", input.Do)
	}
	return json.NewEncoder(os.Stdout).Encode(output)
}

func managerOf(config *rest.Config, owner string) (*ssa.ResourceManager, client.Client, error) {
	http, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, nil, err
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, http)
	if err != nil {
		return nil, nil, err
	}
	direct, err := client.New(config, client.Options{Mapper: mapper, Scheme: runtime.NewScheme()})
	if err != nil {
		return nil, nil, err
	}
	poller := polling.NewStatusPoller(direct, mapper, polling.Options{})
	return ssa.NewResourceManager(direct, poller, ssa.Owner{Field: owner, Group: "kustomize.toolkit.fluxcd.io"}), direct, nil
}
