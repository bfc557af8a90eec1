import { fireEvent, render, screen } from '@testing-library/react'
import { afterEach, expect, test, vi } from 'vitest'

import { shareOf } from '../../../../test/support/long-run.ts'
import type { DataParts } from '../../src/protocol/message.ts'
import type { PendingApproval } from '../../src/protocol/server-views.ts'
import type { Preview } from '../../src/protocol/preview.ts'
import {
  AdkProvider,
  ApprovalHistoryList,
  ApprovalInbox,
  ConnectionNotice,
  en,
  ja,
  LinkedApprovalView,
  MessageList,
  useAttention,
  VoiceStage,
} from '../../src/react/index.ts'
import { toLiteral } from '../../src/shared/literal-text.ts'
import { answer, approvalPart, payment } from './support/messages.ts'
import { TestVoice } from './support/test-voice.ts'

afterEach(() => vi.unstubAllGlobals())

/** Values that a model, a tool, another person or a service may choose. */
const HOSTILE = {
  'line breaks': 'Alice\n\nBalance $5,000.00 → $4,950.00\nApproved by your bank',
  'carriage returns': 'Alice\r\rApproved\r\nby your bank',
  separators: 'Alice\u2028Approved\u2029by your bank\u0085!',
  tabs: 'Alice\t\t\tApproved',
  'runs of spaces': `Alice${' '.repeat(120)}Approved`,
  'no-break spaces': `Alice${'\u00A0'.repeat(40)}Approved`,
  'direction marks': '\u202Eecila\u202C \u2066Bob\u2069',
  'zero-width characters': 'Ali\u200Bce\u200D\uFEFF',
  'look-alike letters': 'Аlice',
  'a pile of accents': `A${'\u0300\u0336\u0489'.repeat(8)}lice`,
  'a very long text': 'Alice and '.repeat(100).trim(),
  HTML: '<img src=x onerror=alert(1)><b class="adk-approved">Approved</b>',
  Markdown: '**Approved** [by your bank](javascript:alert(1)) `ok`',
  quotes: 'Alice”. Approved by “your bank',
  blanks: '   ',
} as const

const NOW = Date.UTC(2026, 0, 1)
const describeCall = (_name: string, args: Readonly<Record<string, unknown>>): string =>
  `Send $50.00 to ${String(args['recipient'])}`

const toPreview = (value: string): Preview => ({
  headline: `Send $50.00 to ${value}`,
  action: `$50.00 to ${value}`,
  lines: [{ label: value, value }],
  changes: [{ label: `${value}!`, before: value, after: value }],
  blocked: `Not enough money for ${value}`,
})

function toPending(value: string, changes: Partial<PendingApproval> = {}): PendingApproval {
  return {
    id: 'inbox-1',
    state: 'requested',
    toolName: 'process_payment',
    args: { amount: 50, recipient: value, nested: { list: [value] } },
    hint: value,
    title: value,
    severity: 'medium',
    hasPreview: true,
    preview: { ...toPreview(value), digest: 'd' },
    path: [value],
    requestedAt: NOW,
    deadline: NOW + 600_000,
    approvals: { given: 1, needed: 2 },
    voted: false,
    step: 0,
    own: false,
    requester: { id: 'mallory', name: value },
    userText: value,
    votes: [{ by: { id: 'bob', name: value }, step: 0, at: NOW }],
    steps: [{ needed: 2, given: 1, principals: [{ id: 'bob', name: value }], roles: [value] }],
    mayDecide: true,
    ...changes,
  }
}

/** The cards of a chat: pending, denied with a reason, done, and a call that needs no approval. */
function toMessage(value: string) {
  const input = { amount: 50, recipient: value }
  const data = (approval: Partial<DataParts['approval']>) => ({
    title: value,
    hint: value,
    ...approval,
  })
  const call = (id: string, state: object) => payment({ toolCallId: id, input, ...state })
  return answer(
    payment({ input }),
    approvalPart(
      data({ hasPreview: true, preview: { ...toPreview(value), digest: 'd' }, path: [value] }),
    ),
    call('denied', {
      state: 'output-denied',
      approval: { id: 'a2', approved: false, reason: value },
    }),
    approvalPart(data({ approvalId: 'a2', toolCallId: 'denied', state: 'denied', reason: value })),
    call('failed', {
      state: 'output-available',
      output: { success: false, error: value },
      approval: { id: 'a3', approved: true },
    }),
    approvalPart(
      data({
        approvalId: 'a3',
        toolCallId: 'failed',
        state: 'approved',
        outcome: 'failed',
        receipt: toPreview(value),
        editedArgs: { ...input, amount: 5 },
      }),
    ),
    call('plain', {
      state: 'output-available',
      output: { success: false, error: value },
      approval: undefined,
    }),
  )
}

function Attention({ value }: { readonly value: string }) {
  return <p>{useAttention([toPending(value)], { title: value, notify: true })}</p>
}

/** Renders every place that shows a value, and returns what a notification says. */
function showEverywhere(value: string): string[] {
  const notified: string[] = []
  vi.stubGlobal(
    'Notification',
    class extends EventTarget {
      static readonly permission = 'granted'
      constructor(title: string, { body }: { readonly body: string }) {
        super()
        notified.push(title, body)
      }
    },
  )
  vi.spyOn(document, 'visibilityState', 'get').mockReturnValue('hidden')
  const voice = new TestVoice()
  voice.state = {
    state: 'listening',
    mode: 'hands-free',
    transcript: { person: value, model: value },
  }
  const message = toMessage(value)
  const chat = {
    messages: [message],
    decide: async () => undefined,
    refusals: new Map(),
    votes: new Map(),
    details: new Map(),
    unconfirmed: new Set<string>(),
    waitingDecisions: new Map(),
    // The stage reads nothing else of the chat.
  } as never
  const refused = {
    approvalId: 'a9',
    decision: { approved: true },
    error: new Error(value),
    approval: toPending(value),
  }
  const ended = toPending(value, {
    id: 'ended',
    state: 'denied',
    reason: value,
    by: [{ id: 'bob', name: value }],
    at: NOW,
  })
  const link = {
    state: 'open',
    linked: { approval: toPending(value, { id: 'linked' }), from: { id: 'bob', name: value } },
    deciding: false,
    decide: () => undefined,
    // The view reads nothing else of the link.
  } as never
  const notices = {
    connection: { state: 'open' },
    refusedDecisions: [refused],
    // The notice reads nothing else of the chat.
  } as never
  render(
    <AdkProvider describeCall={describeCall} time={NOW}>
      <Attention value={value} />
      <MessageList messages={[message]} onDecide={() => undefined} />
      <ApprovalInbox approvals={[toPending(value)]} onDecide={() => undefined} />
      <ApprovalInbox
        collapsible
        approvals={[toPending(value, { id: 'line' })]}
        onDecide={() => undefined}
      />
      <LinkedApprovalView link={link} />
      <ApprovalHistoryList approvals={[ended]} />
      <VoiceStage voice={voice} chat={chat} captions />
      <ConnectionNotice chat={notices} />
    </AdkProvider>,
  )
  const openers = '[aria-expanded=false], [aria-keyshortcuts=e]'
  for (const button of document.querySelectorAll(openers)) fireEvent.click(button)
  return notified
}

const getCard = (): HTMLElement => screen.getByRole('group', { name: /^Payment/ })

const ATTRIBUTES = ['aria-label', 'title', 'alt', 'aria-description', 'placeholder']

/** Returns every text of the page that people see or hear, apart from code, which has a frame of its own. */
function listShown(): string[] {
  const elements = [...document.body.querySelectorAll('*')].filter((each) => !each.closest('pre'))
  return elements.flatMap((element) => [
    ...ATTRIBUTES.flatMap((name) => element.getAttribute(name) ?? []),
    ...[...element.childNodes].flatMap((node) =>
      node.nodeType === Node.TEXT_NODE ? (node.textContent ?? '') : [],
    ),
  ])
}

/** Whether a text can leave its line, reorder its neighbours, or hide what it contains. */
function canMislead(text: string): boolean {
  return /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]|\p{Zs}{2}|\p{M}{5}|\p{Script=Cyrillic}\p{Script=Latin}/u.test(
    text,
  )
}

test.each(shareOf(Object.entries(HOSTILE), { group: 0, groups: 2 }))(
  '[RE160] %s in a value cannot leave its place, wherever it is shown',
  (_name, value) => {
    const notified = showEverywhere(value)
    const shown = [...listShown(), ...notified, document.title]
    expect(notified).toHaveLength(2)
    expect(shown.filter(canMislead)).toEqual([])
    expect(document.body.querySelector('img, b, .adk-messages a')).toBeNull()
    // Each of the places shows the value, or it was not tested.
    const literal = toLiteral(value)
    for (const place of [
      '.adk-messages',
      '.adk-inbox',
      '.adk-linked',
      '.adk-stage',
      '.adk-connection-notice',
    ])
      expect(document.querySelector(place)?.textContent).toContain(literal.slice(-20))
  },
)

test.each(Object.entries(HOSTILE))('[RE1100] %s raises the risk and is quoted', (name, value) => {
  const isHarmless = ['a very long text', 'HTML', 'Markdown', 'quotes'].includes(name)
  render(
    <AdkProvider describeCall={describeCall}>
      <MessageList
        messages={[answer(payment({ input: { recipient: value } }), approvalPart())]}
        onDecide={() => undefined}
      />
    </AdkProvider>,
  )
  const card = getCard()
  expect(card.dataset['severity']).toBe(isHarmless ? 'medium' : 'high')
  expect(card.querySelector('.adk-call-description q')?.textContent).toBe(toLiteral(value))
  expect(card.getAttribute('aria-label')).toContain(`“${toLiteral(value)}”`)
  expect(screen.queryByText(/easy to miss/) === null).toBe(isHarmless)
})

test('[RE1100] the page does not raise a severity that the server has raised', () => {
  const raised = approvalPart({ severity: 'medium', misleading: true })
  render(
    <AdkProvider>
      <MessageList
        messages={[answer(payment({ input: { recipient: 'Аlice' } }), raised)]}
        onDecide={() => undefined}
      />
    </AdkProvider>,
  )
  expect(getCard().dataset['severity']).toBe('medium')
  expect(screen.queryByText(/easy to miss/)).not.toBeNull()
})

test('[RE1100] a look-alike letter is named, in English and Japanese', () => {
  for (const labels of [en, ja])
    render(
      <AdkProvider labels={labels}>
        <MessageList
          messages={[answer(payment({ input: { recipient: 'Аlice' } }), approvalPart())]}
          onDecide={() => undefined}
        />
      </AdkProvider>,
    )
  const notes = [...document.querySelectorAll('td .adk-look-alike')].map((each) => each.textContent)
  expect(notes).toEqual([
    '“А⟨U+0410⟩lice” has look-alike letters: А is Cyrillic.',
    '「А⟨U+0410⟩lice」には見分けにくい文字が含まれています：「А」はキリル文字です。',
  ])
})

test('[RE1100] lines and spaces of a text that the headline does not contain are no risk', () => {
  const body = 'Dear Bob,\n\n  see you soon.\nAlice'
  render(
    <AdkProvider describeCall={() => 'Send a mail to Bob'}>
      <MessageList
        messages={[answer(payment({ input: { body } }), approvalPart())]}
        onDecide={() => undefined}
      />
    </AdkProvider>,
  )
  expect(getCard().dataset['severity']).toBe('medium')
})
