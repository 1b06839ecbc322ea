//! scripted_model
