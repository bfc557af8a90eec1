import { BaseAgent, createEvent, type Event } from '@google/adk'
import type { Part } from '@google/genai'
import { expect, test } from 'vitest'

import { writeNotes } from '../../src/agent/events/event-notes.ts'
import { hasUntrustedText } from '../../src/modules/grants/untrusted-text.ts'
import { assistant, EmulatedGemini, tool } from '../support/agents.ts'

/** A tool as ADK makes one of the list of an MCP server. */
function mcpTool(name: string, annotations: object) {
  return Object.assign(
    tool(name, () => ({})),
    { mcpTool: { name, annotations } },
  )
}

class Elsewhere extends BaseAgent {
  // oxlint-disable-next-line require-yield -- It is not run.
  protected override async *runAsyncImpl(): AsyncGenerator<Event, void, void> {
    throw new Error('It is not run.')
  }

  // oxlint-disable-next-line require-yield -- It is not run.
  protected override async *runLiveImpl(): AsyncGenerator<Event, void, void> {
    throw new Error('It is not run.')
  }
}

const agent = assistant(new EmulatedGemini('http://localhost'), {
  tools: [
    tool('read_clock', () => ({})),
    mcpTool('read_web', {}),
    mcpTool('read_file', { openWorldHint: false }),
  ],
  subAgents: [new Elsewhere({ name: 'helper' })],
})
const options = { agents: new Map([['', agent]]), untrustedTools: ['mail_*'] }

function eventOf(parts: Part[], fields: Partial<Event> = {}): Event {
  return createEvent({ author: 'assistant', content: { role: 'model', parts }, ...fields })
}

const granted = eventOf([{ functionCall: { id: 'call-1', name: 'pay', args: {} } }])
const resultOf = (name: string, fields?: Partial<Event>): Event =>
  eventOf([{ functionResponse: { id: `of ${name}`, name, response: {} } }], fields)
const inside = (event: Event): Event =>
  createEvent({ customMetadata: writeNotes({ nested: { session: 's', event } }) })
const pending = { customMetadata: writeNotes({ pending: ['of read_web'] }) }

test.each<[string, Event, boolean]>([
  ['a message of the person', eventOf([{ text: 'Pay.' }], { author: 'user' }), false],
  ['a reply of the model', eventOf([{ text: 'Paid.' }]), false],
  ['the result of a tool', resultOf('read_clock'), false],
  ['the result of a closed MCP tool', resultOf('read_file'), false],
  ['the transfer to another agent', resultOf('transfer_to_agent'), false],
  ['a confirmation', resultOf('adk_request_confirmation', { author: 'user' }), false],
  ['a call that waits', resultOf('read_web', pending), false],
  [
    'text of a workflow node',
    eventOf([{ text: 'x' }], { author: 'node', nodeInfo: { path: 'w' } }),
    false,
  ],
  ['the result of an open MCP tool', resultOf('read_web'), true],
  ['the result of a tool that the option names', resultOf('mail_search'), true],
  ['the result of a tool that is gone', resultOf('gone'), true],
  ['a result inside another agent', inside(resultOf('read_web')), true],
  ['the reply of an agent elsewhere', eventOf([{ text: 'Pay me.' }], { author: 'helper' }), true],
  ['the reply of an agent that is gone', eventOf([{ text: 'x' }], { author: 'gone' }), true],
  ['a reply with search results', eventOf([{ text: 'x' }], { groundingMetadata: {} }), true],
])('[GR1629] %s', async (_what, event, isUntrusted) => {
  expect(await hasUntrustedText([granted, event], 'call-1', options)).toBe(isUntrusted)
  // What the person knew when they gave the grant does not count, unless it was in another chat.
  expect(await hasUntrustedText([event, granted], 'call-1', options)).toBe(false)
  expect(await hasUntrustedText([event, granted], '', options)).toBe(
    isUntrusted || event === granted,
  )
})
