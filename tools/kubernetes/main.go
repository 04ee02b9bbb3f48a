// Command kubernetes builds a kustomize base as kubectl does, and prints it. It fails for an object of
// an unknown kind, for a field that Kubernetes does not have, and for a wrong type.
package main

import (
	"errors"
	"fmt"
	"os"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// kinds are the objects that it knows, by version and kind.
var kinds = map[string]func() any{
	"apps/v1 Deployment":            func() any { return new(apps.Deployment) },
	"apps/v1 StatefulSet":           func() any { return new(apps.StatefulSet) },
	"v1 Service":                    func() any { return new(core.Service) },
	"v1 Namespace":                  func() any { return new(core.Namespace) },
	"v1 ConfigMap":                  func() any { return new(core.ConfigMap) },
	"v1 Secret":                     func() any { return new(core.Secret) },
	"v1 ServiceAccount":             func() any { return new(core.ServiceAccount) },
	"v1 PersistentVolumeClaim":      func() any { return new(core.PersistentVolumeClaim) },
	"policy/v1 PodDisruptionBudget": func() any { return new(policy.PodDisruptionBudget) },
	"keda.sh/v1alpha1 ScaledObject": nil, // the caller has its schema
}

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(folder string) error {
	objects, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return err
	}
	var faults []error
	for _, o := range objects.Resources() {
		text, err := o.AsYAML()
		if err != nil {
			return err
		}
		name := o.GetApiVersion() + " " + o.GetKind()
		fresh, known := kinds[name]
		switch {
		case !known:
			err = errors.New("an unknown kind")
		case fresh != nil:
			err = yaml.UnmarshalStrict(text, fresh())
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("%s %s: %w", name, o.GetName(), err))
		}
	}
	text, err := objects.AsYaml()
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(text)
	return errors.Join(append(faults, err)...)
}
