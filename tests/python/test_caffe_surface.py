"""Names and parameters of BVLC's pycaffe, which programs pass by position and by keyword."""

from __future__ import annotations

import inspect

import pytest

import caffe
import caffe.pycaffe

SURFACE = """
Net.__init__ network_file phase level stages weights
Net.forward blobs start end kwargs
Net.backward diffs start end kwargs
Net.forward_all blobs kwargs
Net.forward_backward_all blobs diffs kwargs
Net.set_input_arrays data labels
Net._forward start end
Net._backward start end
Net.reshape
Net.clear_param_diffs
Net.copy_from weights
Net.share_with other
Net.save filename
Net.save_hdf5 filename write_diff
Net.load_hdf5 filename
SGDSolver.step iterations
SGDSolver.solve resume_file
SGDSolver.restore state_file
SGDSolver.snapshot
SGDSolver.share_weights net
SGDSolver.apply_update
SGDSolver.add_callback on_start on_gradients_ready
Classifier.__init__ model_file pretrained_file image_dims mean input_scale raw_scale channel_swap
Classifier.predict inputs oversample
Detector.__init__ model_file pretrained_file mean input_scale raw_scale channel_swap context_pad
Detector.detect_windows images_windows
Detector.detect_selective_search image_fnames
Detector.crop im window
Detector.configure_crop context_pad
Layer.setup bottom top
Layer.reshape bottom top
Layer.forward bottom top
Layer.backward top propagate_down bottom
io.blobproto_to_array blob return_diff
io.array_to_blobproto arr diff
io.arraylist_to_blobprotovector_str arraylist
io.blobprotovector_str_to_arraylist data
io.array_to_datum arr label
io.datum_to_array datum
io.load_image filename color
io.resize_image im new_dims interp_order
io.oversample images crop_dims
io.Transformer.__init__ inputs
io.Transformer.preprocess in_ data
io.Transformer.deprocess in_ data
io.Transformer.set_transpose in_ order
io.Transformer.set_channel_swap in_ order
io.Transformer.set_raw_scale in_ scale
io.Transformer.set_mean in_ mean
io.Transformer.set_input_scale in_ scale
draw.get_pooling_types_dict
draw.get_edge_label layer
draw.get_layer_lr_mult layer
draw.get_layer_label layer rankdir display_lrm
draw.choose_color_by_layertype layertype
draw.get_pydot_graph caffe_net rankdir label_edges phase display_lrm
draw.draw_net caffe_net rankdir ext phase display_lrm
draw.draw_net_to_file caffe_net filename rankdir phase display_lrm
coord_map.conv_params fn
coord_map.crop_params fn
coord_map.coord_map fn
coord_map.compose base_map next_map
coord_map.inverse coord_map
coord_map.coord_map_from_to top_from top_to
coord_map.crop top_from top_to
net_spec.param_name_dict
net_spec.to_proto tops
net_spec.assign_proto proto name val
net_spec.Top.to_proto
net_spec.NetSpec.keys
net_spec.NetSpec.vals
net_spec.NetSpec.update name params
net_spec.NetSpec.to_proto
set_device device
set_random_seed seed
set_solver_count solvers
set_solver_rank rank
set_multiprocess multiprocess
init_log level stderr
log message
layer_type_list
get_solver solver_file
"""


@pytest.mark.parametrize("line", SURFACE.strip().splitlines(), ids=lambda line: line.split()[0])
def test_parameters_have_pycaffes_names_and_order(line: str) -> None:
    path, *expected = line.split()
    found = caffe
    for name in path.split("."):
        found = getattr(found, name)
    parameters = [name for name in inspect.signature(found).parameters if name != "self"]
    assert parameters == expected


def test_modules_have_pycaffes_names() -> None:
    solvers = {
        f"{kind}Solver" for kind in ["SGD", "Nesterov", "AdaGrad", "RMSProp", "AdaDelta", "Adam"]
    }
    for module in (caffe, caffe.pycaffe):
        assert solvers | {"Net", "NCCL", "Timer"} <= set(vars(module))
    assert {"UndefinedMapException", "AxisMismatchException", "PASS_THROUGH_LAYERS"} <= set(
        vars(caffe.coord_map)
    )
    assert {"Top", "Function", "NetSpec", "Layers", "Parameters"} <= set(vars(caffe.net_spec))
    assert {"has_nccl", "set_mode_cpu", "set_mode_gpu", "solver_count", "solver_rank"} <= set(
        vars(caffe)
    )
