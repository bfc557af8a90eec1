/// <reference types="node" />
// An MCP server over stdio: a notebook in a JSON file. The demo starts it when a person asks for their notes.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'

import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js'

const [, , file = 'notes.json'] = process.argv

/** @typedef {{ title: string, year: number }} Note */

/** @type {readonly Note[]} */
const SAMPLES = [
  { title: 'Shopping list for the party', year: 2019 },
  { title: 'Ideas for the winter holidays', year: 2021 },
  { title: 'Questions for the dentist', year: new Date().getFullYear() },
]

/** Notes of earlier years are old. */
const isOld = (/** @type {Note} */ { year }) => year < new Date().getFullYear()

/** @returns {readonly Note[]} */
function readNotes() {
  try {
    return /** @type {Note[]} */ (JSON.parse(readFileSync(file, 'utf8')))
  } catch {
    return SAMPLES
  }
}

/** @param {readonly Note[]} notes */
function writeNotes(notes) {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, JSON.stringify(notes))
}

const NOTHING = { type: 'object', properties: {} }
const TITLES = {
  type: 'object',
  properties: { titles: { type: 'array', items: { type: 'string' }, minItems: 1, maxItems: 100 } },
  required: ['titles'],
}

const TOOLS = [
  {
    name: 'list',
    description: 'Lists all notes, and whether they are old.',
    inputSchema: NOTHING,
    annotations: { readOnlyHint: true, openWorldHint: false },
    run: () => ({ notes: readNotes().map((note) => ({ ...note, old: isOld(note) })) }),
  },
  {
    name: 'delete',
    description: 'Deletes the notes with these titles permanently.',
    inputSchema: TITLES,
    annotations: { readOnlyHint: false, destructiveHint: true, openWorldHint: false },
    run: (/** @type {{ titles?: unknown }} */ { titles }) => {
      const notes = readNotes()
      const kept = notes.filter(({ title }) => !Array.isArray(titles) || !titles.includes(title))
      writeNotes(kept)
      return { deleted: notes.length - kept.length, left: kept.length }
    },
  },
  {
    name: 'restore_samples',
    description: 'Adds the sample notes that are missing.',
    inputSchema: NOTHING,
    annotations: {
      readOnlyHint: false,
      destructiveHint: false,
      idempotentHint: true,
      openWorldHint: false,
    },
    run: () => {
      const notes = readNotes()
      const missing = SAMPLES.filter(({ title }) => notes.every((note) => note.title !== title))
      writeNotes([...notes, ...missing])
      return { added: missing.length }
    },
  },
]

const mcp = new McpServer({ name: 'notes', version: '1.0.0' }, { capabilities: { tools: {} } })

// The methods of `McpServer` itself want schemas of zod.
mcp.server.setRequestHandler(ListToolsRequestSchema, () => ({
  tools: TOOLS.map(({ run: _run, ...tool }) => tool),
}))

mcp.server.setRequestHandler(CallToolRequestSchema, ({ params }) => {
  const tool = TOOLS.find(({ name }) => name === params.name)
  if (!tool) return { content: [{ type: 'text', text: 'Unknown tool.' }], isError: true }
  const result = tool.run(params.arguments ?? {})
  return {
    content: [{ type: 'text', text: JSON.stringify(result) }],
    structuredContent: result,
  }
})

await mcp.connect(new StdioServerTransport())
