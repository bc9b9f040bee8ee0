// Two Kubernetes servers in one program, because they share most of their code; the first argument selects one.
package main

import (
	"fmt"
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

func main() {
	which := ""
	if len(os.Args) > 1 {
		which = os.Args[1]
		os.Args = append(os.Args[:1], os.Args[2:]...)
	}
	switch which {
	case "apiserver":
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	case "controllers":
		os.Exit(cli.Run(controllers.NewControllerManagerCommand()))
	}
	fmt.Fprintln(os.Stderr, "usage: controlplane apiserver|controllers OPTION...")
	os.Exit(2)
}
