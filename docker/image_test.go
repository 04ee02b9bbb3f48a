package docker_test

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/internal/proctest"
)

// mostImage is the most bytes of an image as registries keep it, compressed.
const mostImage = 40 << 20

// TestImage builds the image with buildah, from the Dockerfile, and runs the main job in it: a deposit
// that is preserved and verified. The root is read-only, and the user is the image's. golang's image
// cannot be had here, so one with this machine's Go stands in for it. It takes minutes, so it runs only
// with HOLDFAST_TEST_IMAGE set, as root: the platforms to build for, such as linux/amd64,linux/arm64.
func TestImage(t *testing.T) {
	platforms := os.Getenv("HOLDFAST_TEST_IMAGE")
	if platforms == "" {
		t.Skip("HOLDFAST_TEST_IMAGE is not set: the platforms to build for, such as linux/amd64")
	}
	for _, program := range []string{"buildah", "busybox", "unshare"} {
		if _, err := exec.LookPath(program); err != nil {
			proctest.Absent(t, program+" (apt-get install buildah busybox-static)", err)
		}
	}
	t.Setenv("BUILDAH_ISOLATION", "chroot")
	dir := t.TempDir()
	run := func(program string, args ...string) string {
		t.Helper()
		cmd := exec.Command(program, args...)
		cmd.Dir = ".."
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s%s", program, strings.Join(args, " "), err, out, errs.String())
		}
		return strings.TrimSpace(string(out))
	}
	at := []string{"--root", dir + "/images", "--runroot", dir + "/run", "--storage-driver", "vfs"}
	buildah := func(args ...string) string {
		t.Helper()
		return run("buildah", append(slices.Clone(at), args...)...)
	}
	t.Cleanup(func() { _ = exec.Command("buildah", append(slices.Clone(at), "umount", "--all")...).Run() }) // so that the folder can be removed

	base := buildah("from", "scratch")
	goroot, busybox := run("go", "env", "GOROOT"), run("which", "busybox")
	buildah("copy", base, busybox, "/bin/busybox")
	buildah("copy", base, goroot, goroot)
	buildah("copy", base, "/etc/ssl/certs/ca-certificates.crt", "/etc/ssl/certs/")
	for _, program := range []string{"sh", "mkdir", "cp", "chown"} {
		link := filepath.Join(dir, program)
		if err := os.Symlink("/bin/busybox", link); err != nil {
			t.Fatal(err)
		}
		buildah("copy", base, link, "/bin/"+program)
	}
	buildah("config", "--env", "PATH="+goroot+"/bin:/bin", "--env", "GOPROXY=off", "--env", "HOME=/root", "--env", "GOMODCACHE=/modules", "--env", "GOCACHE=/cache", "--env", "TMPDIR=/cache", base)
	buildah("commit", base, "localhost/go")

	for platform := range strings.SplitSeq(platforms, ",") {
		image := "localhost/holdfast-" + strings.ReplaceAll(platform, "/", "-")
		system, machine, _ := strings.Cut(platform, "/")
		// buildah 1.28 looks for the builder's image by the platform of the result, whatever FROM says.
		buildah("bud", "--build-arg", "TARGETOS="+system, "--build-arg", "TARGETARCH="+machine, "--build-arg", "GO_IMAGE=localhost/go", "--build-arg", "VERSION=test", "--ignorefile", "docker/Dockerfile.dockerignore",
			"--volume", run("go", "env", "GOMODCACHE")+":/modules", "--volume", run("go", "env", "GOCACHE")+":/cache", "-f", "docker/Dockerfile", "-t", image, ".")
		layout := filepath.Join(dir, "pushed-"+filepath.Base(image))
		buildah("push", "--format", "oci", image, "dir:"+layout)
		var manifest struct {
			Layers []struct{ Size int64 }
			Config struct{ Digest string }
		}
		var config struct {
			Config struct {
				User                 string
				Entrypoint, Cmd, Env []string
			}
		}
		text, err := os.ReadFile(filepath.Join(layout, "manifest.json"))
		if err == nil {
			err = json.Unmarshal(text, &manifest)
		}
		if err != nil {
			t.Fatal(err)
		}
		if text, err = os.ReadFile(filepath.Join(layout, strings.TrimPrefix(manifest.Config.Digest, "sha256:"))); err == nil {
			err = json.Unmarshal(text, &config)
		}
		if err != nil {
			t.Fatal(err)
		}
		size := int64(0)
		for _, layer := range manifest.Layers {
			size += layer.Size
		}
		t.Logf("%s: %d bytes in %d layers", platform, size, len(manifest.Layers))
		if size == 0 || size > mostImage {
			t.Errorf("%s has %d bytes, want at most %d", platform, size, mostImage)
		}
		if config.Config.User != "65532:65532" || !slices.Equal(config.Config.Entrypoint, []string{"/holdfast"}) {
			t.Errorf("%s: %+v", platform, config)
		}
		container := buildah("from", image)
		root := buildah("mount", container)
		binary, err := elf.Open(filepath.Join(root, "holdfast"))
		if err != nil {
			t.Fatal(err)
		}
		if want := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[machine]; binary.Machine != want {
			t.Errorf("%s has a binary for %v", platform, binary.Machine)
		}
		if machine == runtime.GOARCH {
			mainJob(t, root, config.Config.User, append(config.Config.Entrypoint, config.Config.Cmd...), config.Config.Env)
		}
		binary.Close()
		buildah("rm", container)
	}
}

// mainJob runs the command of the image below root, as its user, with a read-only root and volumes at
// /data and /tmp, and makes a deposit.
func mainJob(t *testing.T, root, user string, command, env []string) {
	t.Helper()
	uid, gid, _ := strings.Cut(user, ":")
	held := []string{
		"mount -t tmpfs -o mode=700,uid=" + uid + ",gid=" + gid + " tmpfs " + filepath.Join(root, "data"),
		"mount -t tmpfs -o mode=1777 tmpfs " + filepath.Join(root, "tmp"),
	}
	inside := func(script string) *exec.Cmd {
		cmd := exec.Command("unshare", "--mount", "--net", "sh", "-euc", "ip link set lo up; mount --bind "+root+" "+root+"; mount -o remount,ro,bind "+root+"; "+strings.Join(held, "; ")+"\n"+script)
		cmd.Env = append(slices.Clone(env), "PATH="+os.Getenv("PATH"))
		return cmd
	}
	in := "chroot --userspec=" + user + " " + root + " "
	out, err := inside(`
` + in + strings.Join(command, " ") + ` &
up=$!
until ` + in + `/holdfast health --dir /data >/dev/null 2>&1; do kill -0 $up; sleep 0.2; done
echo "kept" > ` + filepath.Join(root, "tmp", "plate.txt") + `
` + in + `/holdfast submit /tmp/plate.txt --title "Glass plate" --wait --dir /data
` + in + `/holdfast object verify --all --dir /data
if touch ` + filepath.Join(root, "written") + ` 2>/dev/null; then echo "the root is writable"; exit 1; fi
kill $up
wait $up
`).CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatalf("the main job: %v", err)
	}
}
