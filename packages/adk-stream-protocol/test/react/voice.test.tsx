import { act, fireEvent, render, screen } from '@testing-library/react'
import { userEvent } from '@testing-library/user-event'
import { describe, expect, test } from 'vitest'

import { MessageList, VoiceStage } from '../../src/react/index.ts'
import { TestVoice } from './support/test-voice.ts'

const user = userEvent.setup()

const hold = (): HTMLElement => screen.getByRole('button', { name: 'Hold to talk' })
const handsFree = (): HTMLElement => screen.getByRole('button', { name: 'Talk hands-free' })
const status = (): string => screen.getByRole('status').textContent

describe('talking', () => {
  test('[RE18] audio is sent while a pointer holds the button', async () => {
    const voice = new TestVoice()
    render(<VoiceStage voice={voice} />)
    fireEvent.pointerDown(hold(), { button: 0 })
    expect(status()).toBe('Allow microphone access in the browser…')
    await act(async () => voice.allow())
    expect(hold().getAttribute('aria-pressed')).toBe('true')
    fireEvent.pointerUp(hold())
    expect(voice.did).toEqual(['start', 'press', 'release'])
    expect(voice.state.mode).toBe('push-to-talk')
  })

  test.each([' ', '{Enter}'])('[RE18] and by the key "%s", which repeats itself', async (key) => {
    const voice = new TestVoice()
    render(<VoiceStage voice={voice} />)
    act(() => hold().focus())
    await user.keyboard(key === ' ' ? '[Space>3]' : '{Enter>3}')
    await act(async () => voice.allow())
    await user.keyboard(key === ' ' ? '[/Space]' : '{/Enter}')
    expect(voice.did).toEqual(['start', 'press', 'release'])
  })

  test('[RE18] a button that is released before the microphone opens sends no audio', async () => {
    const voice = new TestVoice()
    render(<VoiceStage voice={voice} />)
    fireEvent.pointerDown(hold(), { button: 0 })
    fireEvent.blur(hold())
    await act(async () => voice.allow())
    expect(voice.did).toEqual(['start', 'release'])
  })

  test('[RE18] a page that is closed releases the button', async () => {
    const voice = new TestVoice()
    const view = render(<VoiceStage voice={voice} />)
    fireEvent.pointerDown(hold(), { button: 0 })
    await act(async () => voice.allow())
    view.unmount()
    expect(voice.did).toEqual(['start', 'press', 'release'])
  })

  test('[RE18] hands-free continues until it is ended, with a level meter that causes no render', async () => {
    const voice = new TestVoice()
    render(<VoiceStage voice={voice} />)
    await user.click(handsFree())
    await act(async () => voice.allow())
    expect(screen.queryByRole('button', { name: 'Hold to talk' })).toBeNull()
    voice.sound(0.5)
    expect(screen.getByRole('meter')).toHaveProperty('value', 0.5)
    expect(screen.getByRole('meter').parentElement?.style.getPropertyValue('--adk-level')).toBe(
      '0.50',
    )
    act(() => voice.become({ state: 'model-speaking', mode: 'hands-free' }))
    expect(status()).toBe('The assistant is speaking…')
    await user.click(screen.getByRole('button', { name: 'End the conversation' }))
    expect(voice.did).toEqual(['start', 'stop'])
    expect(screen.queryByRole('meter')).toBeNull()
  })

  test.each([
    { problem: { code: 'permission-denied' }, says: 'The microphone is blocked.' },
    { problem: { code: 'insecure-page' }, says: 'https' },
    { problem: { code: 'taken-over' }, says: 'another tab' },
    { problem: { code: 'lost', what: 'microphone' }, says: 'The microphone was disconnected.' },
    { problem: { code: 'lost', what: 'connection' }, says: 'The connection was lost.' },
  ] as const)('[RE18] $problem.code is explained', ({ problem, says }) => {
    const voice = new TestVoice()
    render(<VoiceStage voice={voice} />)
    act(() => voice.become({ state: 'off', mode: 'hands-free', problem }))
    expect(status()).toContain(says)
  })
})

test('[RE18] speech is shown while it is recognized, and once', () => {
  const listeners = new Set<() => void>()
  const voice = {
    state: { state: 'listening', transcript: { person: '', isInChat: true } },
    subscribe: (listener: () => void) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    become(transcript: { person: string; isInChat: boolean }): void {
      this.state = { state: 'person-speaking', transcript }
      for (const listener of listeners) listener()
    },
  }
  const { rerender } = render(<MessageList messages={[]} voice={voice} />)
  act(() => voice.become({ person: 'Send 30', isInChat: false }))
  expect(screen.getByRole('log').textContent).toBe('Send 30')
  expect(screen.getByText('Send 30').closest('[aria-hidden="true"]')).not.toBeNull()
  act(() => voice.become({ person: 'Send 30 dollars', isInChat: true }))
  expect(screen.getByRole('log').textContent).toBe('')
  // The message may come before the voice reports it.
  act(() => voice.become({ person: 'Thanks', isInChat: false }))
  expect(screen.getByRole('log').textContent).toBe('Thanks')
  const said = { id: 'said', role: 'user', parts: [{ type: 'text', text: 'Thanks' }] } as const
  rerender(<MessageList messages={[{ ...said, parts: [...said.parts] }]} voice={voice} />)
  expect(screen.getAllByText('Thanks')).toHaveLength(1)
  act(() => voice.become({ person: 'Thanks', isInChat: true }))
  act(() => voice.become({ person: 'And', isInChat: false }))
  expect(screen.getByText('And')).toBeDefined()
})
