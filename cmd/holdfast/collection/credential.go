package collection

import (
	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/credential"
	"github.com/holdfast/holdfast/web/client"
)

func credentialCommand(a *cli.App) *cobra.Command {
	return credential.Commands(a, "Manage the credentials that sources of a collection's deposits require", credential.Owner{
		Noun: "collection", Put: (*client.Client).PutCredential, List: (*client.Client).Credentials, Remove: (*client.Client).RemoveCredential,
		Set: &cobra.Command{
			Use:   "set NAME ORIGIN --basic USER | --bearer | --s3 KEYID | --default-chain | --signing",
			Short: "Set a collection's credential for https://HOST[:PORT] or s3://BUCKET, or its key signing:NAME",
		},
	})
}
