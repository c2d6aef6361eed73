"""JointScreening and its parts."""

from tamis.rows.joint.joint import JointScreening

__all__ = ["JointScreening"]
