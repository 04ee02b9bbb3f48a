// Package collection has the command `holdfast collection`: collections, the versions of their
// profiles, and the import of Merritt's profiles.
//
// It saves a profile over the version that it compared it with, so no concurrent change is lost.
// Package profile has the format.
package collection

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/bagit"
	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/profile"
	"github.com/holdfast/holdfast/registry"
)

//go:embed help/*.txt
var helpTexts embed.FS

// Command returns the command `holdfast collection`.
func Command(a *cli.App) *cobra.Command {
	return cli.WithHelp(helpTexts, cli.Group("collection", "Manage collections: profiles, holds and credentials",
		listCommand(a), showCommand(a), createCommand(a), updateCommand(a), historyCommand(a), importCommand(a), holdCommand(a), releaseCommand(a), credentialCommand(a)))
}

func listCommand(a *cli.App) *cobra.Command {
	return a.ClientFlags(&cobra.Command{
		Use: "list", Short: "List collections", Args: cli.Needs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			all, err := c.Collections(cmd.Context())
			if err != nil {
				return err
			}
			l := cli.Lister[registry.Collection]{None: "no collections", Row: collectionRow, Columns: []terminal.Column{
				{Name: "collection"}, {Name: "name", Flex: true}, {Name: "owner"}, {Name: "version", Right: true, Spare: 1}, {Name: "created"},
			}}
			return l.Print(a, cli.Whole(all))
		},
	})
}

func collectionRow(c registry.Collection) []string {
	return []string{c.Mnemonic, c.Profile.Name, c.Profile.Owner, strconv.Itoa(c.Version), terminal.TimeText(c.CreatedAt)}
}

// bagProfileText returns the name of a collection's BagIt profile; --json has all of it.
func bagProfileText(doc json.RawMessage) string {
	if len(doc) == 0 {
		return ""
	}
	p, err := bagit.ParseProfile(bytes.NewReader(doc))
	if err != nil {
		return err.Error() // written by another version of Holdfast
	}
	return p.Identifier()
}

func showCommand(a *cli.App) *cobra.Command {
	var version int
	var asProfile bool
	cmd := &cobra.Command{
		Use: "show NAME", Short: "Show a collection and its profile", Args: cli.Needs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if version < 0 || version == 0 && cmd.Flags().Changed("version") {
				return exit.Usagef("--version must be 1 or more")
			}
			c, err := a.Connect()
			if err != nil {
				return err
			}
			it, err := c.Collection(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if version > 0 {
				v, err := c.ProfileVersion(cmd.Context(), args[0], version)
				if err != nil {
					return err
				}
				it.Profile, it.Version = v.Profile, v.Version
			}
			switch {
			case asProfile:
				return printProfile(a, it)
			case a.JSON:
				return a.PrintJSON(it)
			}
			f := collectionFacts(it)
			return f.Write(a.Out)
		},
	}
	cmd.Flags().IntVar(&version, "version", 0, "show version `N` of its profile")
	cmd.Flags().BoolVar(&asProfile, "profile", false, "print only the profile, for collection update: YAML, or JSON with --json")
	return a.ClientFlags(cmd)
}

// printProfile prints a profile as a file: YAML, or JSON with --json.
func printProfile(a *cli.App, c registry.Collection) error {
	c.Profile.DigestAlgorithm = c.Profile.Digests() // whatever a later version of the profile says
	text, err := profile.YAML(c.Profile, fmt.Sprintf("collection %s, version %d of its profile", c.Mnemonic, c.Version))
	if a.JSON {
		text, err = profile.JSON(c.Profile)
		text = append(text, '\n')
	}
	if err != nil {
		return err
	}
	_, err = a.Out.Write(text)
	return err
}

// collectionFacts returns the facts about a collection for people.
func collectionFacts(c registry.Collection) (f terminal.Facts) {
	p := c.Profile
	f.Add("collection", c.Mnemonic)
	f.Add("name", p.Name)
	f.Add("description", p.Description)
	f.Add("owner", p.Owner)
	f.Add("member of", strings.Join(p.Collections, ", "))
	f.Add("NOID template", p.NOIDTemplate)
	f.Add("minting", p.Minting)
	f.Add("inventory digest", p.Digests())
	if p.Priority != nil {
		f.Add("priority", strconv.Itoa(*p.Priority))
	}
	f.Add("storages", strings.Join(p.Storages, ", "))
	if policy := p.Policy(); p.Copies != nil || policy.Offsite > 0 {
		f.Add("copies", fmt.Sprintf("%d, %d of them off-site", policy.Copies, policy.Offsite))
	}
	if p.NameEncoding != "" {
		f.Add("names not in UTF-8", "are read as "+p.NameEncoding)
	}
	f.Add("BagIt profile", bagProfileText(p.BagProfile))
	for _, s := range p.Steps {
		f.Add("outside step", outsideStepText(s))
	}
	if p.ReleaseOneByOne {
		f.Add("released", "one by one")
	}
	if p.StopOnBadRow {
		f.Add("a bad row", "refuses its whole batch")
	}
	switch {
	case p.Scan && p.ScanPartly:
		f.Add("virus scan", "of every file that the engine can scan completely")
	case p.Scan:
		f.Add("virus scan", "of every file")
	}
	if days := p.DuplicateWindow() / (24 * time.Hour); days > 0 {
		f.Add("the same content again", fmt.Sprintf("is a duplicate for %d days", days))
	} else {
		f.Add("the same content again", "is never a duplicate")
	}
	if p.Callback != nil {
		f.Add("callback", p.Callback.URL)
	}
	if p.Mail != nil {
		f.Add("mail to", strings.Join(p.Mail.To, ", "))
	}
	if p.UploadBytes != nil {
		f.Add("uploads", fmt.Sprintf("%s together at most", registry.SizeText(*p.UploadBytes)))
	}
	if p.UploadsOpen != nil {
		f.Add("unfinished uploads", fmt.Sprintf("%d at most", *p.UploadsOpen))
	}
	if p.RetentionDays != nil {
		f.Add("batches are kept", fmt.Sprintf("for %d days after they completed", *p.RetentionDays))
	}
	f.Add("terms", p.Terms.String())
	f.Add("embargo", p.Embargo)
	f.Add("profile", fmt.Sprintf("version %d", c.Version))
	f.Add("created", terminal.TimeText(c.CreatedAt))
	return f
}

// outsideStepText describes an outside step in one line.
func outsideStepText(s registry.OutsideStep) string {
	text := s.Function + " after " + string(s.After)
	if s.On == registry.OnAlways {
		text += ", also of jobs that failed there"
	}
	if s.Blocking {
		text += ", blocking"
	}
	if len(s.Args) > 0 {
		text += ", with " + string(s.Args)
	}
	return text
}
