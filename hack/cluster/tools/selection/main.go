// Selection says which image of an index containerd and CRI-O take on nodes of several platforms, by the packages that they use
// themselves: images.Manifest of containerd, and ChooseInstance of go.podman.io/image. It reads one Case a line from standard
// input and prints one Answer a line.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/errdefs"
	"github.com/containerd/log"
	"github.com/containerd/platforms"
	"github.com/opencontainers/go-digest"
	specs "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"
	"go.podman.io/image/v5/types"
)

// Case is an image, with all its manifests and config blobs by their digests.
type Case struct {
	Nodes   []specs.Platform  `json:"nodes"`
	Root    specs.Descriptor  `json:"root"`
	Objects map[string]string `json:"objects"`
}

// Answer has for each node the architecture of the image that the runtime takes, or "error: " and why it takes none. "nested: " stands
// before an architecture that CRI-O chooses in an index within the index, and does not pull.
type Answer struct {
	Containerd []string `json:"containerd"`
	CRIO       []string `json:"crio"`
}

// store is a content store in memory.
type store map[string]string

type reader struct{ *bytes.Reader }

func (reader) Close() error { return nil }

func (s store) ReaderAt(_ context.Context, descriptor specs.Descriptor) (content.ReaderAt, error) {
	body, ok := s[descriptor.Digest.String()]
	if !ok {
		return nil, fmt.Errorf("%s: %w", descriptor.Digest, errdefs.ErrNotFound)
	}
	return reader{bytes.NewReader([]byte(body))}, nil
}

func (s store) Info(_ context.Context, digest digest.Digest) (content.Info, error) {
	body, ok := s[digest.String()]
	if !ok {
		return content.Info{}, fmt.Errorf("%s: %w", digest, errdefs.ErrNotFound)
	}
	return content.Info{Digest: digest, Size: int64(len(body))}, nil
}

// architectureOf returns the architecture that the config of a manifest names.
func (s store) architectureOf(config specs.Descriptor) string {
	var image specs.Image
	if err := json.Unmarshal([]byte(s[config.Digest.String()]), &image); err != nil {
		return "error: config: " + err.Error()
	}
	return image.Architecture
}

// containerd does what PullImage does to choose, in both of its ways to pull: with the transfer service, which is the default and fetches
// only what is exactly for the node's platform, and without it. If one of them fails, the node may refuse the image. For arm it is only
// the second way: the first goes by the variant of the node's CPU, which nothing here knows.
func (s store) containerd(root specs.Descriptor, node specs.Platform) string {
	only := platforms.Only(node)
	if node.Architecture != "arm" {
		transfer := s.pulled(root, images.FilterPlatforms, platforms.Ordered(node), only)
		if strings.HasPrefix(transfer, "error: ") {
			return transfer
		}
	}
	return s.pulled(root, func(children images.HandlerFunc, matcher platforms.Matcher) images.HandlerFunc {
		return images.LimitManifests(images.FilterPlatforms(children, matcher), only, 1)
	}, only, only)
}

// pulled fetches an image, chooses among what it has fetched, and reads the config. containerd then computes the size; see decision 080.
func (s store) pulled(
	root specs.Descriptor,
	filter func(images.HandlerFunc, platforms.Matcher) images.HandlerFunc,
	fetched platforms.Matcher,
	only platforms.MatchComparer,
) string {
	ctx := context.Background()
	here := store{}
	fetch := images.HandlerFunc(func(_ context.Context, descriptor specs.Descriptor) ([]specs.Descriptor, error) {
		body, ok := s[descriptor.Digest.String()]
		if !ok {
			// To know of entries that the registry lacks takes a request for each. It counts only if containerd chooses one of them.
			return nil, images.ErrSkipDesc
		}
		here[descriptor.Digest.String()] = body
		return nil, nil
	})
	if err := images.Walk(ctx, images.Handlers(fetch, filter(images.ChildrenHandler(here), fetched)), root); err != nil {
		return "error: fetch: " + err.Error()
	}
	chosen, err := images.Manifest(ctx, here, root, only)
	if err != nil {
		return "error: " + err.Error()
	}
	return s.architectureOf(chosen.Config)
}

// crio does what copy.Image does with an index: it chooses one entry. Where that is an index, copy refuses it (copy/single.go).
func (s store) crio(body []byte, kind string, node specs.Platform) string {
	list, err := manifest.ListFromBlob(body, kind)
	if err != nil {
		return "error: " + err.Error()
	}
	chosen, err := list.ChooseInstance(&types.SystemContext{
		OSChoice: node.OS, ArchitectureChoice: node.Architecture, VariantChoice: node.Variant,
	})
	if err != nil {
		return "error: " + err.Error()
	}
	body = []byte(s[chosen.String()])
	if kind := manifest.GuessMIMEType(body); manifest.MIMETypeIsMultiImage(kind) {
		inside := s.crio(body, kind, node)
		if strings.HasPrefix(inside, "error: ") {
			return inside
		}
		return "nested: " + strings.TrimPrefix(inside, "nested: ")
	}
	return s.single(body)
}

func (s store) single(body []byte) string {
	kind := manifest.GuessMIMEType(body)
	if kind != manifest.DockerV2Schema2MediaType && kind != specs.MediaTypeImageManifest {
		return "error: not a manifest: " + kind
	}
	var chosen specs.Manifest
	if err := json.Unmarshal(body, &chosen); err != nil {
		return "error: " + err.Error()
	}
	return s.architectureOf(chosen.Config)
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "selection:", err)
		os.Exit(1)
	}
}

func run() error {
	if err := log.SetLevel("fatal"); err != nil {
		return err
	}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 16<<20)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	encoder := json.NewEncoder(out)
	for in.Scan() {
		var one Case
		if err := json.Unmarshal(in.Bytes(), &one); err != nil {
			return err
		}
		var answer Answer
		for _, node := range one.Nodes {
			answer.Containerd = append(answer.Containerd, store(one.Objects).containerd(one.Root, node))
			answer.CRIO = append(answer.CRIO, store(one.Objects).crio([]byte(one.Objects[one.Root.Digest.String()]), one.Root.MediaType, node))
		}
		if err := encoder.Encode(answer); err != nil {
			return err
		}
	}
	return in.Err()
}
