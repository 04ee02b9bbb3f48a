package deposit

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/payload"
	"github.com/holdfast/holdfast/cmd/holdfast/progress"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/wire"
)

// GraphCommand returns the command `holdfast graph`.
func GraphCommand(a *cli.App) *cobra.Command {
	return cli.WithHelp(helpTexts, cli.Group("graph", "Submit payloads that wait for each other", graphPrepareCommand(a), graphSealCommand(a), graphShowCommand(a)))
}

// graphFile is the input of `graph prepare`: the API's request, whose nodes may also name a file or
// folder.
type graphFile struct {
	GraphID string      `json:"graph_id"`
	Seal    bool        `json:"seal"`
	Nodes   []graphNode `json:"nodes"`
}

type graphNode struct {
	Payload string `json:"payload"` // as for submit: a file, a folder or an address
	wire.NodeRequest
}

func graphPrepareCommand(a *cli.App) *cobra.Command {
	var graph, key string
	var seal bool
	cmd := &cobra.Command{
		Use: "prepare FILE", Short: "Prepare the submissions and tasks that a JSON file lists (- reads standard input)",
		Example: `  echo '{"nodes": [{"key": "a", "payload": "a.zip"}, {"key": "b", "payload": "b.zip", "requires": [{"key": "a"}]}]}' |
    holdfast graph prepare - --seal`,
		Args: cli.Needs("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			g, err := readGraph(a, args[0])
			if err != nil {
				return err
			}
			g.GraphID = cmp.Or(graph, g.GraphID)
			return prepareGraph(cmd.Context(), a, g, key, seal || g.Seal)
		},
	}
	cmd.Flags().StringVar(&graph, "graph", "", "add to the unsealed graph `ID`")
	cmd.Flags().StringVar(&key, "idempotency-key", "", "an idempotency key; a repeat returns the first graph")
	cmd.Flags().BoolVar(&seal, "seal", false, "seal the graph at once")
	progress.Flags(a, cmd)
	return a.ClientFlags(cmd)
}

// readGraph reads a graph file. It refuses unknown fields, because a typing error would change the
// submission.
func readGraph(a *cli.App, name string) (graphFile, error) {
	var g graphFile
	var raw []byte
	var err error
	if name == "-" {
		raw, err = io.ReadAll(a.In)
	} else {
		raw, err = os.ReadFile(name)
	}
	if err != nil {
		return g, fmt.Errorf("read %s: %w", name, exit.Cause(err))
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&g); err != nil {
		return g, exit.Usagef("%s is not a graph: %s; see: holdfast graph prepare --help", name, notJSON(err))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return g, exit.Usagef("%s has more than one JSON object", name)
	}
	return g, nil
}

// notJSON rewords a decoder's error for people.
func notJSON(err error) string {
	return strings.NewReplacer("json: ", "", "unknown field", "unknown field").Replace(err.Error())
}

func prepareGraph(ctx context.Context, a *cli.App, g graphFile, key string, seal bool) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	request, sent, err := sendNodes(ctx, a, c, g)
	if err != nil {
		return errors.Join(err, takeAllBack(ctx, c, sent))
	}
	var p registry.PreparedGraph
	err = judged(ctx, a, func() error { p, err = c.PrepareGraph(ctx, request, key); return err })
	if err != nil {
		for _, upload := range sent {
			takeBack(ctx, a, c, upload, err)
		}
		return fmt.Errorf("prepare graph: %w", err)
	}
	return prepared(ctx, a, c, p, seal)
}

// takeAllBack removes the uploads of a graph that was not prepared, even after an interruption.
func takeAllBack(ctx context.Context, c *client.Client, sent []string) error {
	var errs []error
	for _, upload := range sent {
		if err := c.RemoveUpload(context.WithoutCancel(ctx), upload); err != nil && !errors.Is(err, registry.ErrNotFound) {
			errs = append(errs, fmt.Errorf("remove upload %s: %w", upload, err))
		}
	}
	return errors.Join(errs...)
}

// sendNodes sends the payloads that are files and folders. It returns the uploads, also with an
// error.
func sendNodes(ctx context.Context, a *cli.App, c *client.Client, g graphFile) (r wire.GraphRequest, sent []string, err error) {
	r.GraphID = g.GraphID
	for _, n := range g.Nodes {
		if n.Payload != "" {
			upload, err := sendNode(ctx, a, c, &n)
			if err != nil {
				return r, sent, fmt.Errorf("node %q: %w", n.Key, err)
			}
			if upload != "" {
				sent = append(sent, upload)
			}
		}
		r.Nodes = append(r.Nodes, n.NodeRequest)
	}
	return r, sent, nil
}

// sendNode puts a node's payload into its request. It returns the upload, "" for none.
func sendNode(ctx context.Context, a *cli.App, c *client.Client, n *graphNode) (upload string, err error) {
	if n.URL != "" || n.UploadID != "" {
		return "", exit.Usagef("give one of payload, url and upload_id")
	}
	typ, err := payload.ParseType(cmp.Or(n.Type, string(registry.AutoType)))
	if err != nil {
		return "", err
	}
	p, err := payload.Of(n.Payload, typ)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, p.Release()) }()
	n.Type, n.URL = string(p.Type), p.URL
	if p.URL != "" {
		return "", nil
	}
	u, err := send(ctx, a, c, p, cmp.Or(n.Collection, wire.DefaultCollection), n.Digest)
	if err != nil {
		return "", fmt.Errorf("send %s: %w", n.Payload, err)
	}
	n.UploadID, n.Filename, n.Modified = u.ID, p.Name, p.Modified
	return u.ID, nil
}

// prepared prints a graph's id, and seals the graph if seal is set.
func prepared(ctx context.Context, a *cli.App, c *client.Client, p registry.PreparedGraph, seal bool) error {
	var err error
	if a.JSON {
		err = a.PrintJSON(p)
	} else {
		_, err = fmt.Fprintln(a.Out, p.GraphID)
	}
	if err != nil {
		return err
	}
	if seal {
		return sealGraph(ctx, a, c, p.GraphID)
	}
	a.Note("prepared %d items; to start them: %s", len(p.Items), a.CommandLine("graph seal", p.GraphID))
	return nil
}

func graphSealCommand(a *cli.App) *cobra.Command {
	return a.ClientFlags(&cobra.Command{
		Use: "seal ID", Short: "Start all items of a prepared graph", Args: cli.Needs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			return sealGraph(cmd.Context(), a, c, args[0])
		},
	})
}

func sealGraph(ctx context.Context, a *cli.App, c *client.Client, id string) error {
	if err := c.Seal(ctx, id); err != nil {
		noteCycle(ctx, a, c, id, err)
		return err
	}
	a.Note("sealed %s; to see its progress: %s", id, a.CommandLine("graph show", id))
	return nil
}

// noteCycle prints the keys of the nodes that wait for each other. err has their ids.
func noteCycle(ctx context.Context, a *cli.App, c *client.Client, id string, err error) {
	p := new(wire.Problem)
	if !errors.As(err, &p) || len(p.Cycle) == 0 {
		return
	}
	g, err := c.Graph(ctx, id)
	if err != nil {
		return // err has the ids
	}
	var names []string
	for _, item := range append(slices.Clone(p.Cycle), p.Cycle[0]) {
		names = append(names, cmp.Or(g.Keys[item], item))
	}
	a.Note("these wait for each other: %s", strings.Join(names, " -> "))
}

func graphShowCommand(a *cli.App) *cobra.Command {
	return a.ClientFlags(&cobra.Command{
		Use: "show ID", Short: "Show a graph's items, their states and what they wait for", Args: cli.Needs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			g, err := c.Graph(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if a.JSON {
				return a.PrintJSON(g)
			}
			return showGraph(a, g)
		},
	})
}

func showGraph(a *cli.App, g registry.GraphView) error {
	var f terminal.Facts
	f.Add("graph", g.ID)
	f.Add("sealed", map[bool]string{true: "yes", false: "no; its items start once it is sealed"}[g.Sealed])
	f.Add("items", graphCounts(g.Items))
	if err := f.Write(a.Out); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(a.Out); err != nil {
		return err
	}
	waits := waitsFor(g)
	l := cli.Lister[registry.WorkItem]{None: "no items", Columns: []terminal.Column{
		{Name: "key"}, {Name: "item"}, {Name: "state", Meaning: terminal.StateMeaning}, {Name: "waits for"}, {Name: "name", Flex: true}, {Name: "note", Flex: true},
	}, Row: func(it registry.WorkItem) []string {
		return []string{g.Keys[it.ID], it.ID, string(it.State), strings.Join(waits[it.ID], ", "), it.Name, progress.Classed(it.Note, it.ErrorClass)}
	}}
	return l.Print(a, cli.Whole(g.Items))
}

// graphCounts returns the number of items by state, in the order of items.
func graphCounts(items []registry.WorkItem) string {
	var order []registry.State
	counts := map[registry.State]int64{}
	for _, it := range items {
		if !slices.Contains(order, it.State) {
			order = append(order, it.State)
		}
		counts[it.State]++
	}
	parts := make([]string, len(order))
	for i, s := range order {
		parts[i] = registry.CountText(counts[s]) + " " + string(s)
	}
	return strings.Join(parts, ", ")
}

// waitsFor returns by item id what the item still waits for: nodes by key, other items by id.
func waitsFor(g registry.GraphView) map[string][]string {
	waits := map[string][]string{}
	for _, e := range g.Edges {
		if e.SatisfiedAt != nil {
			continue
		}
		name := cmp.Or(g.Keys[e.RequiresID], e.RequiresID)
		if e.WaitFor == registry.WaitSettled {
			name += " (settled)"
		}
		waits[e.ItemID] = append(waits[e.ItemID], name)
	}
	return waits
}
