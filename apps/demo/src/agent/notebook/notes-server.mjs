/// <reference types="node" />
// An MCP server over stdio: a notebook in a JSON file. The demo starts it when a person asks for their notes.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'

import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js'

const [, , file = 'notes.json'] = process.argv

/** @typedef {{ title: string, year: number, kind?: string, important?: boolean }} Note */

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

/** How long the server waits for an answer. The bridge has a shorter deadline of its own. */
const ANSWER_TIMEOUT_MS = 24 * 60 * 60 * 1_000

/** The texts of the form, in the languages of the demo. */
const FORM_TEXTS = {
  en: {
    message: 'What should the note say?',
    title: 'Note',
    kind: 'Kind',
    kinds: { todo: 'To do', idea: 'Idea', shopping: 'Shopping' },
    important: 'Important',
  },
  ja: {
    message: 'メモの内容を入力してください。',
    title: '内容',
    kind: '種類',
    kinds: { todo: 'やること', idea: 'アイデア', shopping: '買い物' },
    important: '重要',
  },
}

/**
 * Asks the user for a note in a form, while the call runs.
 *
 * @param {{ language?: unknown }} args
 * @param {import('@modelcontextprotocol/sdk/types.js').RequestId} requestId The call that asks.
 */
async function askForNote({ language }, requestId) {
  const { message, title, kind, kinds, important } = FORM_TEXTS[language === 'ja' ? 'ja' : 'en']
  const { action, content = {} } = await mcp.server.elicitInput(
    {
      mode: 'form',
      message,
      requestedSchema: {
        type: 'object',
        properties: {
          title: { type: 'string', title, minLength: 1, maxLength: 80 },
          kind: {
            type: 'string',
            title: kind,
            oneOf: Object.entries(kinds).map(([value, name]) => ({ const: value, title: name })),
          },
          important: { type: 'boolean', title: important, default: false },
        },
        required: ['title', 'kind'],
      },
    },
    { relatedRequestId: requestId, timeout: ANSWER_TIMEOUT_MS },
  )
  if (action !== 'accept') return { saved: false, action }
  /** @type {Note} */
  const note = {
    title: String(content['title']),
    kind: String(content['kind']),
    important: content['important'] === true,
    year: new Date().getFullYear(),
  }
  const notes = readNotes()
  writeNotes([...notes, note])
  return { saved: true, title: note.title, notes: notes.length + 1 }
}

const NOTHING = { type: 'object', properties: {} }
const TITLES = {
  type: 'object',
  properties: { titles: { type: 'array', items: { type: 'string' }, minItems: 1, maxItems: 100 } },
  required: ['titles'],
}

const TOOLS = [
  {
    name: 'add',
    description: 'Asks the user for a new note in a form, and adds it.',
    inputSchema: {
      type: 'object',
      properties: {
        language: { type: 'string', enum: ['en', 'ja'], description: 'The language of the form.' },
      },
    },
    annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: false },
    run: askForNote,
  },
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

mcp.server.setRequestHandler(CallToolRequestSchema, async ({ params }, { requestId }) => {
  const tool = TOOLS.find(({ name }) => name === params.name)
  if (!tool) return { content: [{ type: 'text', text: 'Unknown tool.' }], isError: true }
  const result = await tool.run(params.arguments ?? {}, requestId)
  return {
    content: [{ type: 'text', text: JSON.stringify(result) }],
    structuredContent: result,
  }
})

await mcp.connect(new StdioServerTransport())
