import { useVoice, VoiceButton } from 'adk-stream-protocol/react'
import type { VoiceState } from 'adk-stream-protocol/voice'

import { useDemo } from '../demo/use-demo.ts'
import { useLabels } from '../i18n/language.tsx'
import { MicrophoneChoice } from './microphone-choice.tsx'
import { useChatVoice } from './use-chat-voice.ts'

/** The voice controls of a chat: buttons, live caption and microphone. */
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

/** The end of the current transcript. Hidden from screen readers, because the conversation contains it too. */
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

function newest(text: string): string {
  return text.length > SHOWN ? `…${text.slice(-SHOWN)}` : text
}
