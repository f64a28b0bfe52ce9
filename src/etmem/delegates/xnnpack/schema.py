"""The order of fields in XNNPACK's serialized graph, in the notation of ``etmem.program.schema``."""

from __future__ import annotations

from etmem.program.schema import Schema, parse

_TABLES = """
Buffer              storage:[u8]
PerChannelGroupQuant scale:[f32] channel_dim:i32 group_size:i32 scale_bf16:[i16] scale_buffer_idx:u32 num_scales:u32
PerChannelQuant     scale:[f32] channel_dim:i32 scale_buffer_idx:u32 num_scales:u32
PerTokenDynamicQuant num_nonbatch_dims:i32
PerTensorQuant      scale:f32 zero_point:i32
XNNTensorValue      datatype:i16 num_dims:u32 dims:[u32] constant_buffer_idx:u32 external_id:u32 flags:u32 id_out:u32
XNNQuantizedTensorValue tensor_value:XNNTensorValue quant_params:|XNNQuantParams
OutputMinMax        output_min:f32 output_max:f32
XNode               xnode_union:|XNodeUnion debug_handle:u32 output_min_max:OutputMinMax
XValue              xvalue_union:|XValueUnion
XNNStaticTranspose  num_dims:u32 perm:[u32] input_id:u32 output_id:u32 flags:u32
XNNStaticResizeBilinear2D new_height:u32 new_width:u32 input_id:u32 output_id:u32 flags:u32
XNNStaticConstantPad pre_paddings:[u32] post_paddings:[u32] padding_value:f32 input_id:u32 output_id:u32 flags:u32
_XNNNode2x1         input1_id:u32 input2_id:u32 output_id:u32 flags:u32
_XNNNode1x1         input_id:u32 output_id:u32 flags:u32
_XNNCat             axis:u32 input1_id:u32 input2_id:u32 input3_id:u32 input4_id:u32 output_id:u32 flags:u32
                    input5_id:u32
XNNELU              alpha:f32 input_id:u32 output_id:u32 flags:u32
XNNFullyConnected   input1_id:u32 filter_id:u32 bias_id:u32 output_id:u32 flags:u32
_XNNNodeConv        padding_top:u32 padding_right:u32 padding_bottom:u32 padding_left:u32 kernel_height:u32
                    kernel_width:u32 subsampling_height:u32 subsampling_width:u32 dilation_height:u32
                    dilation_width:u32 group_input_channels:u32 group_output_channels:u32 groups:u32
                    adjustment_height:u32 adjustment_width:u32 input1_id:u32 filter_id:u32 bias_id:u32 output_id:u32
                    flags:u32
_XNNPooling2D       padding_top:u32 padding_right:u32 padding_bottom:u32 padding_left:u32 pooling_height:u32
                    pooling_width:u32 stride_height:u32 stride_width:u32 dilation_height:u32 dilation_width:u32
                    input_id:u32 output_id:u32 flags:u32
XNNStaticReshape    num_dims:u32 new_shape:[u32] input_id:u32 output_id:u32 flags:u32
XNNStaticSlice      num_dims:u32 offsets:[u32] sizes:[u32] input_id:u32 output_id:u32 flags:u32
XNNScaledDotProductAttention query_id:u32 key_id:u32 value_id:u32 scale_id:u32 mask_id:u32 output_id:u32 flags:u32
XNNArgMaxPooling2d  padding_top:u32 padding_right:u32 padding_bottom:u32 padding_left:u32 pooling_height:u32
                    pooling_width:u32 input_id:u32 output_value_id:u32 output_index_id:u32 flags:u32
XNNLeakyReLU        negative_slope:f32 input_id:u32 output_id:u32 flags:u32
ConstantDataOffset  offset:u64 size:u64 named_key:string
XNNGraph            version:string xnodes:[XNode] xvalues:[XValue] num_externs:u32 input_ids:[u32] output_ids:[u32]
                    constant_buffer:[Buffer] mem_buffer_sizes:[u32] constant_data:[ConstantDataOffset]
"""

_NODES = """
Add:_XNNNode2x1 FullyConnected:XNNFullyConnected Softmax:_XNNNode1x1 Sigmoid:_XNNNode1x1
StaticTranspose:XNNStaticTranspose Clamp:_XNNNode1x1 Conv2d:_XNNNodeConv Div:_XNNNode2x1
StaticResizeBilinear2D:XNNStaticResizeBilinear2D StaticConstantPad:XNNStaticConstantPad AvgPooling2d:_XNNPooling2D
Minimum:_XNNNode2x1 DepthwiseConv2d:_XNNNodeConv MaxPooling2d:_XNNPooling2D Multiply:_XNNNode2x1
Subtract:_XNNNode2x1 Floor:_XNNNode1x1 Convert:_XNNNode1x1 GlobalAvgPooling2d:_XNNNode1x1
StaticReshape:XNNStaticReshape ArgMaxPooling2d:XNNArgMaxPooling2d SquareRoot:_XNNNode1x1 Ceiling:_XNNNode1x1
Hardswish:_XNNNode1x1 LeakyReLU:XNNLeakyReLU Maximum:_XNNNode2x1 Negate:_XNNNode1x1 Square:_XNNNode1x1 ELU:XNNELU
Abs:_XNNNode1x1 PReLU:_XNNNode2x1 Concatenate2:_XNNCat Concatenate3:_XNNCat Concatenate4:_XNNCat
StaticSlice:XNNStaticSlice ScaledDotProductAttention:XNNScaledDotProductAttention BatchMatrixMultiply:_XNNNode2x1
Concatenate5:_XNNCat ConvTranspose2d:_XNNNodeConv ReciprocalSquareRoot:_XNNNode1x1 Log:_XNNNode1x1 Gelu:_XNNNode1x1
Tanh:_XNNNode1x1 Exp:_XNNNode1x1 Sin:_XNNNode1x1 Copy:_XNNNode1x1 Cos:_XNNNode1x1
"""

NODES: tuple[tuple[str, str], ...] = tuple(
    (name, table) for name, _, table in (word.partition(":") for word in _NODES.split())
)
"""(kind, table) of the members of ``XNodeUnion``, by type number from 1."""

SCHEMA = Schema(
    parse(_TABLES),
    {
        "XNNQuantParams": ("PerChannelQuant", "PerTensorQuant", "PerTokenDynamicQuant", "PerChannelGroupQuant"),
        "XValueUnion": ("XNNTensorValue", "XNNQuantizedTensorValue"),
        "XNodeUnion": tuple(table for _, table in NODES),
    },
)
