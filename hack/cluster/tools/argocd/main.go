// Argo CD's own comparison and its own sync, without its controller: what it says of the objects that a repository has, and what it does to
// them. It reads from standard input what Input says, and prints what Output says.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"time"

	argocd "github.com/argoproj/argo-cd/v3/common"
	"github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	comparison "github.com/argoproj/argo-cd/v3/util/argo/diff"
	"github.com/argoproj/argo-cd/v3/util/argo/normalizers"
	"github.com/argoproj/gitops-engine/pkg/diff"
	"github.com/argoproj/gitops-engine/pkg/sync"
	"github.com/argoproj/gitops-engine/pkg/sync/common"
	"github.com/argoproj/gitops-engine/pkg/utils/kube"
	"github.com/argoproj/gitops-engine/pkg/utils/tracing"
	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
)

// Input is one round of an Application.
type Input struct {
	Kubeconfig string
	// What the repository has.
	Objects []map[string]any
	// The field ignoreDifferences of the Application.
	Ignore []v1alpha1.ResourceIgnoreDifferences
	// The compare option ServerSideDiff=true.
	ServerSideDiff bool
	// The sync option ServerSideApply=true.
	ServerSideApply bool
	// Syncs all objects before it compares them.
	Sync bool
}

// Output is what Argo CD shows: the objects that are OutOfSync, each with the change that a sync would make, and what the sync said of each.
// What its controller would log is on standard error.
type Output struct {
	OutOfSync map[string]json.RawMessage `json:"outOfSync"`
	Messages  []string                   `json:"messages"`
}

type scopes struct{ namespaced map[schema.GroupKind]bool }

func (s scopes) IsNamespaced(kind schema.GroupKind) (bool, error) { return s.namespaced[kind], nil }

func main() {
	// Argo CD logs each comparison; what matters is printed.
	slog.SetDefault(slog.New(slog.DiscardHandler))
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
	kubectl := &kube.KubectlCmd{Log: logr.Discard(), Tracer: tracing.NopTracer{}}
	schemas, parser, err := kubectl.LoadOpenAPISchema(config)
	if err != nil {
		return err
	}
	resources, err := kubectl.GetAPIResources(config, false, everything{})
	if err != nil {
		return err
	}
	known := scopes{map[schema.GroupKind]bool{}}
	for _, resource := range resources {
		known.namespaced[resource.GroupKind] = resource.Meta.Namespaced
	}

	reconcile := func() (sync.ReconciliationResult, error) {
		var targets []*unstructured.Unstructured
		live := map[kube.ResourceKey]*unstructured.Unstructured{}
		for _, object := range input.Objects {
			target := &unstructured.Unstructured{Object: object}
			targets = append(targets, target.DeepCopy())
			found, err := kubectl.GetResource(ctx, config, target.GroupVersionKind(), target.GetName(), target.GetNamespace())
			if apierrors.IsNotFound(err) {
				continue
			} else if err != nil {
				return sync.ReconciliationResult{}, err
			}
			live[kube.GetResourceKey(target)] = found
		}
		return sync.Reconcile(targets, live, "default", known), nil
	}

	output := Output{OutOfSync: map[string]json.RawMessage{}, Messages: []string{}}
	if input.Sync {
		state, err := reconcile()
		if err != nil {
			return err
		}
		syncing, cleanup, err := sync.NewSyncContext("1", state, config, config, kubectl, "default", schemas,
			sync.WithLogr(logr.Discard()),
			sync.WithServerSideApply(input.ServerSideApply),
			sync.WithServerSideApplyManager(argocd.ArgoCDSSAManager))
		if err != nil {
			return err
		}
		defer cleanup()
		// Health is not waited for: no kubelet runs here.
		syncing.Sync()
		for phase, message, results := syncing.GetState(); phase != common.OperationSucceeded; phase, message, results = syncing.GetState() {
			for _, result := range results {
				if result.Status == common.ResultCodeSyncFailed {
					return fmt.Errorf("sync of %s: %s", result.ResourceKey, result.Message)
				}
			}
			if phase.Completed() {
				return fmt.Errorf("sync: %s", message)
			}
			time.Sleep(200 * time.Millisecond)
			syncing.Sync()
		}
		_, _, results := syncing.GetState()
		for _, result := range results {
			output.Messages = append(output.Messages, result.Message)
		}
	}

	state, err := reconcile()
	if err != nil {
		return err
	}
	builder := comparison.NewDiffConfigBuilder().
		WithDiffSettings(input.Ignore, nil, false, normalizers.IgnoreNormalizerOpts{}).
		WithTracking(argocd.LabelKeyAppInstance, string(v1alpha1.TrackingMethodLabel)).
		WithNoCache().
		WithLogger(logr.Discard()).
		WithGVKParser(parser).
		WithManager(argocd.ArgoCDSSAManager).
		WithServerSideDiff(input.ServerSideDiff)
	if input.ServerSideDiff {
		applier, cleanup, err := kube.ManageServerSideDiffDryRuns(config, schemas, tracing.NopTracer{}, logr.Discard(), nil)
		if err != nil {
			return err
		}
		defer cleanup()
		builder = builder.WithServerSideDryRunner(diff.NewK8sServerSideDryRunner(applier))
	}
	settings, err := builder.Build()
	if err != nil {
		return err
	}
	compared, err := comparison.StateDiffs(state.Live, state.Target, settings)
	if err != nil {
		return err
	}
	for i, result := range compared.Diffs {
		if !result.Modified {
			continue
		}
		target := state.Target[i]
		name := fmt.Sprintf("%s %s", target.GetKind(), target.GetName())
		if output.OutOfSync[name], err = jsonpatch.CreateMergePatch(result.NormalizedLive, result.PredictedLive); err != nil {
			output.OutOfSync[name] = json.RawMessage(`"missing"`)
		}
	}
	return json.NewEncoder(os.Stdout).Encode(output)
}

type everything struct{}

func (everything) IsExcludedResource(_, _, _ string) bool { return false }
