import { act, fireEvent, render, screen, within } from '@testing-library/react'
import { userEvent } from '@testing-library/user-event'
import { afterEach, describe, expect, test, vi } from 'vitest'

import {
  AdkProvider,
  type Approval,
  type Decision,
  ja,
  MessageList,
  VoiceStage,
} from '../../src/react/index.ts'
import type { StageView } from '../../src/react/components/voice-stage.tsx'
import { TestVoice } from './support/test-voice.ts'

const user = userEvent.setup()

afterEach(() => void vi.unstubAllGlobals())

interface Asked extends Partial<Approval> {
  readonly amount?: number
}

/** A chat in which payments wait for approval, and what was decided in it. */
function chatWith(...asked: readonly Asked[]) {
  const decided: [string, Decision][] = []
  const parts = asked.flatMap(({ amount = 30, ...approval }, index) => {
    const toolCallId = `c${index}`
    const approvalId = `a${index}`
    const state = approval.kind === undefined ? 'approval-requested' : 'input-available'
    const call = { type: 'tool-pay', toolCallId, state, input: { amount } }
    return [
      state === 'approval-requested' ? { ...call, approval: { id: approvalId } } : call,
      { type: 'data-approval', data: { approvalId, toolCallId, state: 'requested', ...approval } },
    ]
  })
  const messages = parts.length > 0 ? [{ id: 'm1', role: 'assistant', parts }] : []
  return {
    decided,
    chat: {
      messages,
      decide: async (approvalId: string, decision: Decision) =>
        void decided.push([approvalId, decision]),
      refusals: new Map(),
      votes: new Map(),
      details: new Map(),
      unconfirmed: new Set<string>(),
      waitingDecisions: new Map(),
      // The stage reads nothing else of the chat.
    } as never,
  }
}

const ON: StageView = { state: 'listening', mode: 'hands-free', muted: false, connected: true }
const describePayment = (_name: string, args: Record<string, unknown>): string =>
  `Send $${String(args['amount'])} to Alice`

function show(view: StageView, chat = chatWith().chat, labels?: typeof ja) {
  const voice = new TestVoice()
  voice.state = view
  render(
    <AdkProvider describeCall={describePayment} {...(labels && { labels })}>
      <VoiceStage voice={voice} chat={chat}>
        <button type="button">More</button>
      </VoiceStage>
    </AdkProvider>,
  )
  return voice
}

// The button that is held has a status of its own.
const status = (): string | null | undefined =>
  document.querySelector('.adk-stage-controls > [role=status]')?.textContent
const button = (name: string): HTMLElement => screen.getByRole('button', { name })
const pinned = () => screen.queryByRole('region', { name: /approval/i })

describe('the state of a spoken conversation', () => {
  test.each<readonly [string, StageView, string, string]>([
    ['off', { state: 'off', mode: 'hands-free' }, 'Press to talk.', '押すと話せます。'],
    ['connecting', { ...ON, connected: false }, 'Connecting…', '接続しています…'],
    ['listening', ON, 'Listening…', '聞いています…'],
    ['hearing', { ...ON, state: 'person-speaking' }, 'Hearing you…', '音声を認識しています…'],
    ['thinking', { ...ON, replying: true }, 'Thinking…', '考えています…'],
    [
      'speaking',
      { ...ON, state: 'model-speaking', replying: true },
      'The assistant is speaking…',
      'アシスタントが話しています…',
    ],
    ['muted', { ...ON, muted: true }, 'Your microphone is muted.', 'マイクはミュート中です。'],
  ])('[RE751] %s is said in words, in both languages', (_name, view, english, japanese) => {
    show(view)
    expect(status()).toBe(english)
    document.body.replaceChildren()
    show(view, chatWith().chat, ja)
    expect(status()).toBe(japanese)
  })

  test('[RE751] a pending approval is said with what it asks for, unless somebody speaks', () => {
    const { chat } = chatWith({ severity: 'high' })
    const voice = show({ ...ON, replying: true }, chat)
    expect(status()).toBe('Waiting for your approvalSend $30 to Alice · High risk')
    act(() => voice.become({ ...ON, state: 'person-speaking' }))
    expect(status()).toBe('Hearing you…')
  })

  test('[RE751] a problem says what to do', () => {
    show({ state: 'off', mode: 'hands-free', problem: { code: 'no-microphone' } })
    expect(status()).toBe('No microphone was found. Connect one, then try again.')
  })

  test('[RE751] the ring follows the level without a render, and captions show both sides', () => {
    const transcript = { person: 'Send 30', model: `${'word '.repeat(60)}end.` }
    const voice = show({ ...ON, transcript })
    act(() => voice.sound(0.5))
    expect(
      screen.getByRole('region', { name: 'Voice' }).style.getPropertyValue('--adk-level'),
    ).toBe('0.50')
    const captions = screen.getByText('Send 30').closest('[aria-hidden="true"]')
    expect(captions?.textContent).toMatch(/^YouSend 30Assistant….*end\.$/)
  })
})

describe('the controls of a spoken conversation', () => {
  test('[RE752] one button starts the voice, and mutes it while it is on', async () => {
    const voice = show({ state: 'off', mode: 'hands-free' })
    await user.click(button('Talk hands-free'))
    await act(async () => voice.allow())
    await user.click(button('Mute the microphone'))
    await user.click(button('Unmute the microphone'))
    await user.click(button('Mute the microphone'))
    await user.click(button('End the conversation'))
    expect(voice.did).toEqual(['start', 'mute', 'unmute', 'mute', 'stop', 'unmute'])
    expect(button('Talk hands-free')).toBeTruthy()
  })

  test('[RE752] the model is interrupted while it speaks, and push-to-talk works', () => {
    const voice = show({ ...ON, state: 'model-speaking' })
    fireEvent.click(button('Interrupt the assistant'))
    expect(voice.did).toEqual(['interrupt'])
    act(() => voice.become({ ...ON, mode: 'push-to-talk' }))
    expect(screen.queryByRole('button', { name: 'Interrupt the assistant' })).toBeNull()
    expect(button('Hold to talk').getAttribute('aria-pressed')).toBe('false')
    expect(button('More')).toBeTruthy()
  })
})

describe('an approval whose card is out of view', () => {
  test('[RE753] is pinned, the oldest first, and is decided there with its preview', async () => {
    const preview = { digest: 'd1', headline: 'h', action: '$30.00' }
    const { chat, decided } = chatWith({ preview, hasPreview: true }, { amount: 600 })
    show(ON, chat)
    const region = screen.getByRole('region', { name: 'Approval 1 of 2' })
    expect(within(region).getByText('Send $30 to Alice')).toBeTruthy()
    await user.click(button('Approve $30.00'))
    expect(decided).toEqual([['a0', { approved: true, preview: 'd1' }]])
  })

  test('[RE753] is denied with a reason, by keyboard', async () => {
    const { chat, decided } = chatWith({})
    show(ON, chat)
    act(() => button('Approve').focus())
    await user.keyboard('d')
    await user.keyboard('too much{Enter}')
    expect(decided).toEqual([['a0', { approved: false, reason: 'too much' }]])
  })

  test('[RE753] of high severity is not approved by one click, and a blocked one not at all', async () => {
    const high = chatWith({ severity: 'high' })
    show(ON, high.chat)
    fireEvent.click(button('Approve'))
    document.body.replaceChildren()
    const blocked = chatWith({ hasPreview: true, preview: { digest: 'd', blocked: 'No money.' } })
    show(ON, blocked.chat)
    fireEvent.click(button('Approve'))
    expect([...high.decided, ...blocked.decided]).toEqual([])
    expect(screen.getByText('No money.')).toBeTruthy()
  })

  test('[RE753] that is a question leads to its form, and one that was decided is not pinned', () => {
    show(ON, chatWith({ kind: 'input' }).chat)
    expect(status()).toContain('Waiting for your answer')
    expect(screen.queryByRole('button', { name: 'Approve' })).toBeNull()
    expect(button('Show card')).toBeTruthy()
    document.body.replaceChildren()
    show(ON, chatWith({ state: 'approved' }).chat)
    expect(pinned()).toBeNull()
  })

  test('[RE753] is not pinned before the browser has reported that a new card is out of view', () => {
    const listeners: ((entries: unknown[]) => void)[] = []
    vi.stubGlobal(
      'IntersectionObserver',
      class {
        constructor(listener: (entries: unknown[]) => void) {
          listeners.push(listener)
        }
        observe(): void {}
        disconnect(): void {}
      },
    )
    const report = (height: number): void =>
      listeners.at(-1)?.([
        {
          boundingClientRect: { height: 200, bottom: 200 },
          intersectionRect: { height, bottom: height },
        },
      ])
    const voice = new TestVoice()
    voice.state = ON
    const { chat } = chatWith({})
    // React adds the card and the controls to the page at the same time.
    render(
      <>
        <MessageList {...(chat as object)} messages={(chat as { messages: [] }).messages} />
        <VoiceStage voice={voice} chat={chat} />
      </>,
    )
    const shown: boolean[] = [pinned() !== null]
    for (const height of [200, 60, 200]) {
      act(() => report(height))
      shown.push(pinned() !== null)
    }
    expect(shown).toEqual([false, false, true, false])
  })

  test('[RE753] is not pinned while the voice is off', () => {
    show({ state: 'off', mode: 'hands-free' }, chatWith({}).chat)
    expect(pinned()).toBeNull()
  })
})
