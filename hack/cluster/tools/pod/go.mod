// What runs in the small pods of the real node.
module archaware-controller/hack/cluster/tools/pod

go 1.26.0
