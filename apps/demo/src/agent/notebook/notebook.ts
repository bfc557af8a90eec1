import { fileURLToPath } from 'node:url'

import { AgentTool, type BaseLlm, LlmAgent, MCPToolset } from '@google/adk'

/**
 * An agent for the user's notes, which are in an MCP server. It is used as a tool, so that the server is started only when the user asks
 * for notes: ADK lists the tools of an agent, and so starts its MCP servers, before each request to its model.
 */
export function createNotebook(model: BaseLlm, notesFile: string): AgentTool {
  const server = fileURLToPath(new URL('notes-server.mjs', import.meta.url))
  const notes = new MCPToolset(
    {
      type: 'StdioConnectionParams',
      serverParams: { command: process.execPath, args: [server, notesFile], stderr: 'ignore' },
    },
    [],
    // The tools become notes_list, notes_add, notes_delete and notes_restore_samples.
    'notes',
  )
  return new AgentTool({
    agent: new LlmAgent({
      name: 'notebook',
      description: "Lists, adds and deletes the user's notes. Give it the whole request.",
      model,
      instruction:
        'You keep the notes of the user. List them with notes_list before you delete any. Deletions are approved before they run, so do not ask for permission. To add a note, call notes_add with the language of the request: it asks the user for the text itself. Then report in one sentence, in the language of the request.',
      tools: [notes],
    }),
  })
}
