import { expect, test } from 'vitest'
import { z } from 'zod'

import { afterCalls, respond, type Call, declare, demoTools, pay, user } from './prompt.ts'

const functions = [
  ...demoTools,
  declare('adk_request_input', { message: { type: 'STRING' } }, ['message']),
  declare('accountant', { request: { type: 'STRING' } }, ['request']),
  declare('get_calendar', {}, []),
  declare('transfer_to_agent', { agentName: { type: 'STRING' } }, ['agentName']),
  declare('notebook', { request: { type: 'STRING' } }, ['request']),
]

test.each([
  ['Ask the accountant to send $20 to Alice', 'send $20 to Alice'],
  ['経理に、Aliceへ20ドル送金するように頼んで', 'Aliceへ20ドル送金してください'],
  ['経理に頼んで、Aliceに20ドル送金して', 'Aliceに20ドル送金して'],
])('[ED460] the model passes %j on to the accountant, which calls the payment', (request, task) => {
  const delegation: Call = { name: 'accountant', args: { request: task } }
  expect(respond(request, { functions })).toMatchObject({ calls: [delegation], text: '' })
  // The accountant has only the tool for payments.
  expect(respond(task)).toMatchObject({ calls: [pay(20, 'Alice')] })
  const contents = afterCalls(request, [delegation], [{ result: 'I sent $20.00 to Alice.' }])
  expect(respond(contents, { functions }).text).toBe('I sent $20.00 to Alice.')
})

const PLAN = declare('propose_plan', { steps: { type: 'ARRAY', items: { type: 'OBJECT' } } }, [
  'steps',
])

test.each([
  ['Make a plan: send $20 to Alice and $30 to Bob', 'The plan is approved.'],
  ['計画を立てて、Aliceさんに20ドル、Bobさんに30ドル送金してください', '計画が承認されました。'],
])(
  '[ED1650] for %j, the model proposes the payments, and makes them when they are approved',
  (request, approved) => {
    const offered = { functions: [...functions, PLAN] }
    const payments = [pay(20, 'Alice'), pay(30, 'Bob')]
    const { calls } = respond(request, offered)
    const steps = payments.map(({ name: tool, args }) => ({ tool, args }))
    expect(calls).toMatchObject([{ name: 'propose_plan', args: { steps } }])
    const made = respond(afterCalls(request, calls, [{ status: 'approved', steps: 2 }]), offered)
    expect(made).toMatchObject({ text: approved, calls: payments })
    const denied = respond(afterCalls(request, calls, [{ status: 'denied' }]), offered)
    expect(denied.calls).toEqual([])
    // Without the tool, and in a conversation, the model makes the payments directly.
    expect(respond(request, { functions }).calls).toMatchObject(payments)
    expect(respond(request, { ...offered, mode: 'live' }).calls).toMatchObject(payments)
  },
)

test.each([
  ['Reserve a table for two', 2],
  ['レストランの席を4名で予約して', 4],
  ['レストランの席を二人で予約して', 2],
  ['Reserve a table for me', undefined],
  ['Reserve a table for 40', undefined],
])('[ED461] the form for %j has the number of guests that the request names', (request, guests) => {
  const [call] = respond(request, { functions }).calls
  const schema = z
    .object({ response_schema: z.object({ properties: z.object({ guests: z.unknown() }) }) })
    .parse(call?.args)
  expect(schema.response_schema.properties.guests).toEqual({
    type: 'integer',
    title: request.startsWith('R') ? 'Guests' : '人数',
    minimum: 1,
    maximum: 12,
    ...(guests !== undefined && { default: guests }),
  })
})

test.each([
  ['Reserve a table for me', 'I noted a table for 4 on 2026-12-24, Inside.'],
  ['レストランの席を予約して', '2026-12-24、4名様、Insideで承りました。'],
])('[ED461] the model asks for the details of %j with a form', (request, noted) => {
  const { calls, text } = respond(request, { functions })
  expect(text).toBe('')
  expect(calls).toMatchObject([
    {
      name: 'adk_request_input',
      args: { response_schema: { required: ['guests', 'date', 'seating'] } },
    },
  ])
  const answer = { guests: 4, date: '2026-12-24', seating: 'Inside' }
  expect(respond(afterCalls(request, calls, [answer]), { functions }).text).toContain(noted)
  const denied = { status: 'denied', error: 'The person declined to answer.' }
  expect(respond(afterCalls(request, calls, [denied]), { functions }).text).not.toContain('2026')
})

test.each([
  ['Show my calendar', 'Today in Hana’s calendar: 09:30 Team meeting and 12:00 Lunch.'],
  [
    'What is on my schedule today?',
    'Today in Hana’s calendar: 09:30 Team meeting and 12:00 Lunch.',
  ],
  ['今日の予定を見せて', '今日のHanaさんの予定は、09:30 Team meeting、12:00 Lunchです。'],
])('[ED520] the model reads the calendar for %j', (request, listed) => {
  const { calls, text } = respond(request, { functions })
  expect({ calls, text }).toEqual({ calls: [{ name: 'get_calendar', args: {} }], text: '' })
  const events = [
    { time: '09:30', title: 'Team meeting' },
    { time: '12:00', title: 'Lunch' },
  ]
  const answer = { owner: 'Hana', events }
  expect(respond(afterCalls(request, calls, [answer]), { functions }).text).toBe(listed)
  const denied = { status: 'denied', error: 'The person declined to sign in.' }
  expect(respond(afterCalls(request, calls, [denied]), { functions }).text).not.toContain('Hana')
})

const NOTES = {
  functions: ['notes_list', 'notes_add', 'notes_restore_samples', 'notes_delete'].map((name) =>
    declare(name, {}, []),
  ),
}

test.each([
  ['Delete my old notes', '1 of them', 'I deleted 1 note.', 'no notes from earlier years'],
  ['古いメモを削除して', 'そのうち1件', 'メモを1件削除しました。', '去年以前のメモはありません'],
])('[ED521] the model deletes the old notes for %j', (request, found, deleted, none) => {
  const delegation: Call = { name: 'notebook', args: { request } }
  expect(respond(request, { functions })).toMatchObject({ calls: [delegation], text: '' })
  const list: Call = { name: 'notes_list', args: {} }
  expect(respond(request, NOTES)).toMatchObject({ calls: [list], text: '' })
  const notes = [
    { title: 'Old', old: true },
    { title: 'New', old: false },
  ]
  const listed = respond(afterCalls(request, [list], [toMcp({ notes })]), NOTES)
  const deletion: Call = { name: 'notes_delete', args: { titles: ['Old'] } }
  expect(listed.calls).toEqual([deletion])
  expect(listed.text.replace('One of them', '1 of them')).toContain(found)
  const after = (result: Readonly<Record<string, unknown>>) =>
    respond(afterCalls(request, [deletion], [result]), NOTES).text
  expect(after(toMcp({ deleted: 1 }))).toBe(deleted)
  expect(after({ status: 'denied', error: 'The person denied this call.' })).not.toContain(deleted)
  const nothing = toMcp({ notes: notes.slice(1) })
  expect(respond(afterCalls(request, [list], [nothing]), NOTES)).toMatchObject({ calls: [] })
  expect(respond(afterCalls(request, [list], [nothing]), NOTES).text).toContain(none)
})

test.each([
  ['Write a note for me', 'en', 'I saved the note “Milk”.', 'I saved no note.'],
  ['Could you add a new note?', 'en', 'I saved the note “Milk”.', 'I saved no note.'],
  ['新しいメモを書いて', 'ja', 'メモ「Milk」を保存しました。', 'メモは保存していません。'],
  ['メモを一つ追加してください', 'ja', 'メモ「Milk」を保存しました。', 'メモは保存していません。'],
])('[ED650] the model adds a note for %j', (request, language, saved, unsaved) => {
  const delegation: Call = { name: 'notebook', args: { request } }
  expect(respond(request, { functions })).toMatchObject({ calls: [delegation], text: '' })
  const add: Call = { name: 'notes_add', args: { language } }
  expect(respond(request, NOTES)).toMatchObject({ calls: [add], text: '' })
  const after = (result: Readonly<Record<string, unknown>>) =>
    respond(afterCalls(request, [add], [toMcp(result)]), NOTES)
  expect(after({ saved: true, title: 'Milk' })).toMatchObject({ text: saved, calls: [] })
  expect(after({ saved: false, action: 'decline' }).text).toContain(unsaved)
})

test('[ED650] a payment with a note is a payment', () => {
  const request = 'Send $20 to Alice and add a note'
  expect(respond(request, { functions }).calls).toMatchObject([pay(20, 'Alice')])
})

test.each([
  ['Plan a weekend in Paris', 'Paris'],
  ['京都の週末旅行を計画して', '京都'],
])('[ED522] the model plans, books and confirms in steps for %j', (request, name) => {
  const transfer: Call = { name: 'transfer_to_agent', args: { agentName: 'weekend_trip' } }
  expect(respond(request, { functions })).toMatchObject({ calls: [transfer], text: '' })
  expect(respond(request, { functions, mode: 'live' })).toMatchObject({ calls: [] })
  const soFar = [user(request), contextOf('[assistant] called tool `transfer_to_agent`')]
  expect(respond(soFar, step('plan')).text).toContain(name)
  const booking: Call = { name: 'book_trip', args: { place: name, nights: 2, price: 240 } }
  expect(respond([...soFar, contextOf('[plan] said: Fine.')], step('book')).calls).toEqual([
    booking,
  ])
  const booked = (result: Readonly<Record<string, unknown>>) =>
    respond(afterCalls(request, [booking], [result]), step('book')).text
  expect(booked({ booked: true })).toMatch(/240\.00/)
  expect(booked({ status: 'denied', error: 'The person denied this call.' })).not.toMatch(/240/)
  const confirm = (result: string) => respond([...soFar, contextOf(result)], step('confirm')).text
  const [yes, no] = [confirm('result: {"booked":true}'), confirm('result: {"status":"denied"}')]
  expect(yes).toContain(name)
  expect(no).toContain(name)
  expect(yes).not.toBe(no)
})

/** A request of the agent of a step. */
function step(name: string) {
  return { systemInstruction: `You do the step "${name}" of a trip.`, functions: [] }
}

/** Tells what another agent did, as ADK does. */
function contextOf(text: string) {
  return user(`For context:\n${text}`)
}

/** A result as ADK's MCP tools return it. */
function toMcp(structuredContent: Readonly<Record<string, unknown>>) {
  return { content: [{ type: 'text', text: JSON.stringify(structuredContent) }], structuredContent }
}
