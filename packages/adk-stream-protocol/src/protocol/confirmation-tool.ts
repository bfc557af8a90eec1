/** The name under which ADK asks a person, and under which clients of the earlier system answer. */
export const CONFIRMATION_TOOL = 'adk_request_confirmation'
