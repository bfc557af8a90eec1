import { useVoice, VoiceButton } from 'adk-stream-protocol/react'
import type { Voice, VoiceState } from 'adk-stream-protocol/voice'
import { Captions, ChevronUp, MessageSquare } from 'lucide-react'

import { useDemo } from '../demo/use-demo.ts'
import { useLabels } from '../i18n/language.tsx'
import { useCaptions } from '../settings/captions.ts'
import { useMode } from '../settings/mode.ts'
import { focusNextApproval } from '../shell/focus-next-approval.ts'
import { MicrophoneChoice } from './microphone-choice.tsx'

interface VoiceBarProps {
  readonly voice: Voice
  /** How many approvals of the chat are pending. */
  readonly pending: number
}

/** The voice controls of a chat: the button, pending approvals, captions and the microphone. */
export function VoiceBar({ voice, pending }: VoiceBarProps) {
  const state = useVoice(voice)
  const [hasCaptions, chooseCaptions] = useCaptions()
  const { voice: labels, chats } = useLabels().shell
  const [, chooseMode] = useMode()
  const demo = useDemo()
  const isOn = state.state !== 'off' && state.state !== 'asking'
  return (
    <div className="talk" data-state={state.state}>
      {isOn && demo?.emulated && <p className="fine talk-note">{labels.emulated}</p>}
      {isOn && hasCaptions === 'on' && <Caption state={state} />}
      {isOn && !state.connected && <p className="talk-lost">{labels.waiting}</p>}
      {isOn && pending > 0 && (
        <button type="button" className="talk-pending" onClick={focusNextApproval}>
          {chats.pending(pending)}
          <ChevronUp aria-hidden="true" />
        </button>
      )}
      <VoiceButton voice={voice} />
      {isOn && (
        <button
          type="button"
          className="icon-button"
          aria-label={labels.captions}
          title={labels.captions}
          aria-pressed={hasCaptions === 'on'}
          onClick={() => chooseCaptions(hasCaptions === 'on' ? 'off' : 'on')}
        >
          <Captions aria-hidden="true" />
        </button>
      )}
      {isOn && <MicrophoneChoice voice={voice} />}
      {/* Where the top bar has no room for the mode. */}
      <button
        type="button"
        className="icon-button back-to-chat"
        aria-label={labels.backToChat}
        title={labels.backToChat}
        onClick={() => chooseMode('sse')}
      >
        <MessageSquare aria-hidden="true" />
      </button>
    </div>
  )
}

/** The end of the current transcript. Hidden from screen readers, because the conversation contains it too. */
function Caption({ state }: { readonly state: VoiceState }) {
  if (!('transcript' in state)) return null
  const { person, model } = state.transcript
  return (
    <p className="caption" aria-hidden="true">
      {person && <span className="caption-person">{newest(person)}</span>}
      {model && <span className="caption-model">{newest(model)}</span>}
    </p>
  )
}

const SHOWN = 160

function newest(text: string): string {
  return text.length > SHOWN ? `…${text.slice(-SHOWN)}` : text
}
