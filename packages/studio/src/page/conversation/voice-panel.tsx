import { type AdkChat, useVoice, VoiceStage } from 'adk-stream-protocol/react'
import { Voice, listMicrophones } from 'adk-stream-protocol/voice'
import { Captions, MessageSquare, ChevronDown, Mic } from 'lucide-react'
import { useCallback, useEffect, useState, useMemo, useSyncExternalStore } from 'react'

import { IconButton } from '../icon-button.tsx'
import { usePlugin } from '../plugin/plugin-context.ts'
import { useStudio } from '../wire/studio-info.ts'
import { live } from '../wire/wire.ts'
import { useLabels } from '../i18n/language.tsx'
import { useCaptions, useMode } from '../settings.ts'

interface VoicePanelProps {
  readonly voice: Voice
  readonly chat: AdkChat
}

/** The voice of a chat above the message input, with captions, the microphone and the way back to the chat. */
export function VoicePanel({ voice, chat }: VoicePanelProps) {
  const { state } = useVoice(voice)
  const [captions, chooseCaptions] = useCaptions()
  const { emulatedVoice, shell } = useLabels()
  const labels = shell.voice
  const [, chooseMode] = useMode()
  const studio = useStudio()
  const isOn = state !== 'off' && state !== 'asking'
  return (
    <div className="talk column-width">
      <VoiceStage voice={voice} chat={chat} captions={captions === 'on'}>
        {isOn && (
          <IconButton
            icon={Captions}
            label={labels.captions}
            aria-pressed={captions === 'on'}
            onClick={() => chooseCaptions(captions === 'on' ? 'off' : 'on')}
          />
        )}
        {isOn && <MicrophoneChoice voice={voice} />}
        {/* Where the top bar has no room for the mode. */}
        <IconButton
          icon={MessageSquare}
          label={labels.backToChat}
          className="icon-button back-to-chat"
          onClick={() => chooseMode('sse')}
        />
      </VoiceStage>
      {isOn && studio?.emulated && <p className="fine talk-note">{emulatedVoice}</p>}
    </div>
  )
}

/** Selects the microphone. Shows nothing if there is only one. Browsers name microphones after access is granted. */
function MicrophoneChoice({ voice }: { readonly voice: Voice }) {
  const { voice: labels } = useLabels().shell
  const [choices, setChoices] = useState<Awaited<ReturnType<typeof listMicrophones>>>([])
  useEffect(() => {
    let isCancelled = false
    const update = () =>
      void listMicrophones().then(
        (found) => isCancelled || setChoices(found),
        // The current microphone stays on. There is no other one to choose.
        () => undefined,
      )
    update()
    // Missing without HTTPS, where there is no microphone to choose.
    const { mediaDevices } = navigator as { readonly mediaDevices?: MediaDevices }
    mediaDevices?.addEventListener('devicechange', update)
    return () => {
      isCancelled = true
      mediaDevices?.removeEventListener('devicechange', update)
    }
  }, [])
  if (choices.length < 2) return null
  return (
    <span className="microphone">
      {/* Where there is no room for the name, the icon is below the transparent `select`. */}
      <Mic aria-hidden="true" />
      <ChevronDown aria-hidden="true" />
      <select
        aria-label={labels.microphone}
        title={labels.microphone}
        onChange={({ target }) => void voice.setDevice(target.value)}
      >
        {choices.map(({ deviceId, label }, index) => (
          <option key={deviceId} value={deviceId}>
            {label || `${labels.microphone} ${index + 1}`}
          </option>
        ))}
      </select>
    </span>
  )
}

/** Switches to the mode with voice, if the server offers it. */
export function TalkButton() {
  const { voice: labels } = useLabels().shell
  const [, choose] = useMode()
  if (useStudio()?.modes.includes('live') === false) return null
  return <IconButton icon={Mic} label={labels.needsLive} onClick={() => choose('live')} />
}

/**
 * Returns the voice of a chat in live mode. It stops when the chat or the mode changes. It tells the plug-in who speaks, and Escape
 * interrupts the model.
 */
export function useChatVoice(chatId: string, mode: string): Voice | undefined {
  const voice = useMemo(
    () => (mode === 'live' ? new Voice({ transport: live, chatId }) : undefined),
    [chatId, mode],
  )
  useEffect(() => () => voice?.stop(), [voice])
  const { onSpeaking } = usePlugin()
  useEffect(() => {
    if (!voice || !onSpeaking) return
    const leave = voice.onSpeaking(onSpeaking)
    return () => {
      leave()
      onSpeaking(false)
    }
  }, [voice, onSpeaking])
  useEffect(() => {
    if (!voice) return
    const interrupt = (event: KeyboardEvent) => {
      if (event.key !== 'Escape' || event.isComposing || isOverlayOpen()) return
      if (voice.state.state === 'model-speaking') voice.interrupt()
    }
    document.addEventListener('keydown', interrupt)
    return () => document.removeEventListener('keydown', interrupt)
  }, [voice])
  return voice
}

/** Returns whether the model speaks. Unlike `useVoice`, it does not render for each word. */
export function useIsSpoken(voice: Voice | undefined): boolean {
  const subscribe = useCallback(
    (listener: () => void) => voice?.subscribe(listener) ?? (() => undefined),
    [voice],
  )
  return useSyncExternalStore(subscribe, () => voice?.state.state === 'model-speaking')
}

/** Escape closes an open dialog or popover instead. */
function isOverlayOpen(): boolean {
  return document.querySelector('dialog:modal, :popover-open') !== null
}
