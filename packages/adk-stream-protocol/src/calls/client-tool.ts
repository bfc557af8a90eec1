import type { BaseTool } from '@google/adk'

import type { EventNotes } from '../agent/events/event-notes.ts'
import type { OutputResponse } from '../protocol/read-responses.ts'

/** How a client supplies the results of a tool. The tool does nothing on the server. */
export interface ClientTool {
  /** How long the client may take, in ms. */
  readonly timeoutMs: number
  /** The result of a call that the client did not run in time. */
  readonly timedOut: OutputResponse['result']
  /** Converts the result of a client to the response for the model. */
  readonly toResponse: (result: OutputResponse['result']) => Record<string, unknown>
}

const clientTools = new WeakMap<BaseTool, ClientTool>()

/** Declares that a tool runs in the client. */
export function declareClientTool(tool: BaseTool, properties: ClientTool): void {
  clientTools.set(tool, properties)
}

/** Returns how a client supplies the results of a tool. Returns undefined for a tool that runs on the server. */
export function asClientTool(tool: BaseTool): ClientTool | undefined {
  return clientTools.get(tool)
}

/** Returns the note that offers a call to the client, if its tool runs there. */
export function offerOf(tool: BaseTool, toolCallId: string): Pick<EventNotes, 'offered'> {
  return clientTools.has(tool) ? { offered: [toolCallId] } : {}
}
