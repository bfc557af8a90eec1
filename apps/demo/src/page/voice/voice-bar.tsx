import { useVoice, VoiceButton } from 'adk-stream-protocol/react'
import type { VoiceState } from 'adk-stream-protocol/voice'

import { useDemo } from '../demo/use-demo.ts'
import { useLabels } from '../i18n/language.tsx'
import { MicrophoneChoice } from './microphone-choice.tsx'
import { useChatVoice } from './use-chat-voice.ts'

/** Talks with the agent of a chat: the buttons, what is being said, and which microphone hears it. */
export function VoiceBar({ chatId }: { readonly chatId: string }) {
  const voice = useChatVoice(chatId)
  const state = useVoice(voice)
  const { voice: labels } = useLabels().shell
  const demo = useDemo()
  const isOn = state.state !== 'off' && state.state !== 'asking'
  return (
    <div className="talk" data-state={state.state}>
      <VoiceButton voice={voice} />
      {isOn && <MicrophoneChoice voice={voice} />}
      {isOn && <Caption state={state} />}
      {isOn && demo?.emulated && <p className="fine talk-note">{labels.emulated}</p>}
    </div>
  )
}

/** The newest words of whoever speaks. The conversation has them too, and reads them out. */
function Caption({ state }: { readonly state: VoiceState }) {
  const { voice: labels } = useLabels().shell
  if (!('transcript' in state)) return null
  const { person, model } = state.transcript
  return (
    <p className="caption" aria-hidden="true">
      {!state.connected && <span className="caption-lost">{labels.waiting}</span>}
      {person && <span className="caption-person">{newest(person)}</span>}
      {model && <span className="caption-model">{newest(model)}</span>}
    </p>
  )
}

const SHOWN = 160

function newest(words: string): string {
  return words.length > SHOWN ? `…${words.slice(-SHOWN)}` : words
}
