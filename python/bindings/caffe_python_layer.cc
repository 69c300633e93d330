#include "caffe_python_layer.h"

#include <nanobind/stl/string.h>

#include <string>
#include <utility>

#include "caffe_module.h"
#include "gil.h"
#include "hearth/caffe/layers/python_layer.h"
#include "hearth/caffe/proto/text_writer.h"

namespace nb = nanobind;

namespace hearth::bindings {
namespace {

using caffe::Blob;
using caffe::Blobs;
using caffe::Layer;

// Formats the exception as Python prints it, starting at the layer's own frames.
std::string TextOf(const nb::python_error& error) {
  const nb::object lines =
      nb::module_::import_("traceback").attr("format_exception")(error.value());
  return nb::cast<std::string>(nb::str("").attr("join")(lines).attr("rstrip")());
}

// Converts an exception of the layer's code to an Error with the traceback. KeyboardInterrupt is
// raised again as soon as Python code runs.
template <typename Run>
void InPython(Run run) {
  const AcquiredGil gil;
  try {
    run();
  } catch (const nb::python_error& error) {
    const std::string text = TextOf(error);
    if (error.matches(PyExc_KeyboardInterrupt)) PyErr_SetInterrupt();
    Throw(ErrorCode::kInternal, "{}", text);
  }
}

// Returns the layer's class. A missing module or class is the user's mistake and is reported
// without a traceback; an error in the module's code is reported with one.
nb::object FindClass(const std::string& module_name, const std::string& name) {
  Require(!module_name.empty() && !name.empty(), ErrorCode::kInternal,
          "python_param must name a module and, as layer, a class of it");
  nb::object module;
  try {
    module = nb::module_::import_(module_name.c_str());
  } catch (const nb::python_error& error) {
    if (!error.matches(PyExc_ModuleNotFoundError)) throw;
    Throw(ErrorCode::kInternal,
          "the module '{}' of python_param cannot be imported: {}; put its folder on PYTHONPATH",
          module_name, nb::str(error.value()).c_str());
  }
  Require(nb::hasattr(module, name.c_str()), ErrorCode::kInternal,
          "the module '{}' of python_param has no class '{}'", module_name, name);
  return module.attr(name.c_str());
}

class PythonLayer final : public Layer {
 public:
  using Layer::Layer;
  ~PythonLayer() override {
    // The last reference to a Python object may only be dropped with the GIL, but the thread that
    // destroys the net might not hold the GIL.
    const AcquiredGil gil;
    self_.reset();
  }

  caffe::LayerTraits traits() const override {
    return {.arity = {0, caffe::Arity::kNoLimit, 0, caffe::Arity::kNoLimit},
            .allows_in_place = true,
            .runs_user_code = true};
  }
  const nb::object& self() const { return self_; }

  void SetUp(const Blobs& bottom, const Blobs& top) override {
    InPython([&] {
      const caffe::PythonParameter& param = param_.python_param();
      const nb::object type = FindClass(param.module(), param.layer());
      self_ = type(caffe::WriteText(param_));
      // The attributes are set before setup() is called, which may read them. Caffe sets param_str
      // and phase too.
      self_.attr("name") = name();
      self_.attr("type") = this->type();
      self_.attr("param_str") = param.param_str();
      self_.attr("phase") = static_cast<int>(context().phase);
      self_.attr("blobs") = ParamBlobs{LayerHandle::Within(*this, life_)};
      self_.attr("setup")(ListOf(bottom), ListOf(top));
    });
  }

  void Reshape(const Blobs& bottom, const Blobs& top) override {
    InPython([&] { self_.attr("reshape")(ListOf(bottom), ListOf(top)); });
  }

  void Forward(const Blobs& bottom, const Blobs& top) override {
    InPython([&] { self_.attr("forward")(ListOf(bottom), ListOf(top)); });
  }

  void Backward(const Blobs& top, const std::vector<bool>& propagate_down,
                const Blobs& bottom) override {
    InPython([&] {
      nb::list wanted;
      for (const bool propagate : propagate_down) wanted.append(propagate);
      self_.attr("backward")(ListOf(top), wanted, ListOf(bottom));
    });
  }

 private:
  nb::list ListOf(const Blobs& blobs) const {
    nb::list list;
    for (Blob* blob : blobs) list.append(BlobHandle::Within(*blob, life_));
    return list;
  }

  // Expires with the layer, and therefore with the net that owns the blobs.
  const std::shared_ptr<const void> life_ = std::make_shared<char>();
  nb::object self_;
};

}  // namespace

nb::object LayerObject(Layer& layer, nb::handle owner) {
  if (const auto* python = dynamic_cast<const PythonLayer*>(&layer)) return python->self();
  return nb::cast(LayerHandle::KeepingAlive(layer, owner));
}

void RegisterPythonLayer(nb::module_&) {
  // The engine does not depend on Python. With this factory, the engine can make layers of type
  // Python if the module is loaded.
  caffe::SetPythonLayerFactory([](const caffe::LayerParameter& param,
                                  const caffe::NetContext& context) -> std::unique_ptr<Layer> {
    return std::make_unique<PythonLayer>(param, context);
  });
}

}  // namespace hearth::bindings
