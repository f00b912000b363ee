// Sources says where CRI-O requests images by files of registries.conf, by the package that it uses itself:
// go.podman.io/image/v5/pkg/sysregistriesv2. It reads the cases of test/oci/endpoints/registries-conf.json from standard input and
// prints them with its answers.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.podman.io/image/v5/docker/reference"
	"go.podman.io/image/v5/pkg/sysregistriesv2"
	"go.podman.io/image/v5/types"
)

// Case has files by their paths below /etc/containers. Images has, for each image, what is requested: the name, and "insecure" or
// "blocked"; or one "error".
type Case struct {
	What   string              `json:"what"`
	Files  map[string]string   `json:"files"`
	Images map[string][]string `json:"images"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "sources:", err)
		os.Exit(1)
	}
}

func run() error {
	var cases []Case
	if err := json.NewDecoder(os.Stdin).Decode(&cases); err != nil {
		return err
	}
	for _, one := range cases {
		directory, err := os.MkdirTemp("", "sources")
		if err != nil {
			return err
		}
		defer os.RemoveAll(directory)
		dropIns := filepath.Join(directory, "registries.conf.d")
		if err := os.Mkdir(dropIns, 0o755); err != nil {
			return err
		}
		for name, text := range one.Files {
			if err := os.WriteFile(filepath.Join(directory, name), []byte(text), 0o644); err != nil {
				return err
			}
		}
		sys := &types.SystemContext{
			SystemRegistriesConfPath:    filepath.Join(directory, "registries.conf"),
			SystemRegistriesConfDirPath: dropIns,
		}
		for image := range one.Images {
			answer, err := sources(sys, image)
			if err != nil {
				fmt.Fprintf(os.Stderr, "%s, %s: %v\n", one.What, image, err)
				answer = []string{"error"}
			}
			one.Images[image] = answer
		}
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(cases)
}

// sources does what newImageSource and newDockerClient of go.podman.io/image/v5/docker do before they send a request.
func sources(sys *types.SystemContext, image string) ([]string, error) {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return nil, err
	}
	named = reference.TagNameOnly(named)
	registry, err := sysregistriesv2.FindRegistry(sys, named.Name())
	if err != nil {
		return nil, err
	}
	if registry == nil {
		registry = &sysregistriesv2.Registry{
			Endpoint: sysregistriesv2.Endpoint{Location: named.String()},
			Prefix:   named.String(),
		}
	}
	found, err := registry.PullSourcesFromReference(named)
	if err != nil {
		return nil, err
	}
	var answer []string
	for _, source := range found {
		words := []string{source.Reference.Name()}
		there, err := sysregistriesv2.FindRegistry(sys, source.Reference.Name())
		if err != nil {
			return nil, err
		}
		if source.Endpoint.Insecure {
			words = append(words, "insecure")
		}
		if there != nil && there.Blocked {
			words = append(words, "blocked")
		}
		answer = append(answer, strings.Join(words, " "))
	}
	return answer, nil
}
