package queue

import (
	"slices"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// holdings is what is kept, and how full the volumes are, as the page shows it.
type holdings struct {
	wire.Holdings

	Volumes  []volumeRow
	Versions int64
	Single   int64 // versions with one copy
}

// volumeRow is a volume with what is reserved on it.
type volumeRow struct {
	wire.Volume
	registry.Room
}

// Known says that the volume's size is known.
func (v volumeRow) Known() bool { return v.Total > 0 }

// Free is the room that is neither used nor reserved.
func (v volumeRow) Free() int64 { return max(0, v.Total-v.Used-v.Coming) }

// Percent is how much of the volume is used.
func (v volumeRow) Percent() int64 { return percentOf(v.Used, v.Total) }

func holdingsOf(h wire.Holdings) *holdings {
	out := &holdings{Holdings: h}
	for _, v := range h.Volumes {
		row := volumeRow{Volume: v}
		if i := slices.IndexFunc(h.Rooms, func(r registry.Room) bool { return r.Volume == v.Name }); i >= 0 {
			row.Room = h.Rooms[i]
		}
		out.Volumes = append(out.Volumes, row)
	}
	for _, c := range h.Copies {
		if out.Versions += c.Versions; c.Copies == 1 {
			out.Single = c.Versions
		}
	}
	return out
}

func percentOf(part, whole int64) int64 {
	if whole <= 0 {
		return 0
	}
	return int64(float64(part) / float64(whole) * 100)
}
