import { Composer as ChatComposer } from 'adk-stream-protocol/react'
import { ArrowUp, Square } from 'lucide-react'
import {
  type ClipboardEvent,
  type ComponentProps,
  type ComponentRef,
  type ReactNode,
  type RefObject,
  useImperativeHandle,
  useRef,
} from 'react'

import { picturesIn } from '../attachments/pictures-in.ts'
import { usePictures } from '../attachments/use-pictures.ts'
import { useLabels } from '../i18n/language.tsx'
import { DropZone } from './drop-zone.tsx'
import { PictureButton } from './picture-button.tsx'
import { PictureProblems, Previews } from './previews.tsx'

type ChatComposerProps = ComponentProps<typeof ChatComposer>
/** A message to send: text, pictures, or both. */
export type Draft = Parameters<ChatComposerProps['onSend']>[0]

/** The methods of the composer for the page around it. */
export interface ComposerHandle {
  focus(): void
  /** Starts a message with this text and opens the file picker. */
  askAboutPicture(text: string): void
  /** Appends text to the draft. */
  write(text: string): void
}

interface ComposerProps extends Pick<
  ChatComposerProps,
  'status' | 'draftKey' | 'onSend' | 'onStop' | 'onInterrupt'
> {
  readonly handleRef: RefObject<ComposerHandle | null>
  /** The voice controls next to the send button. */
  readonly voice?: ReactNode
}

/** The message input of the library, with pictures and voice. */
export function Composer({ handleRef, voice, ...props }: ComposerProps) {
  const labels = useLabels()
  const pictures = usePictures()
  const composerRef = useRef<ComponentRef<typeof ChatComposer>>(null)
  const chooserRef = useRef<HTMLInputElement>(null)
  const focus = () => composerRef.current?.focus()
  useImperativeHandle(handleRef, () => ({
    focus,
    write: (text) => composerRef.current?.write(text),
    askAboutPicture: (question) => {
      composerRef.current?.write(question)
      chooserRef.current?.click()
    },
  }))
  return (
    <div className="composer">
      <PictureProblems problems={pictures.problems} />
      <ChatComposer
        {...props}
        ref={composerRef}
        inputId={INPUT_ID}
        placeholder={labels.placeholder}
        focusOnMount
        files={{
          count: pictures.held.length,
          take: pictures.take,
          restore: pictures.restore,
        }}
        before={<Previews pictures={pictures.held} onRemove={pictures.remove} />}
        sendIcon={<ArrowUp aria-hidden="true" />}
        stopIcon={<Square aria-hidden="true" className="filled" />}
        onPaste={(event) => pictures.add(takePasted(event))}
      >
        <PictureButton chooserRef={chooserRef} onChoose={pictures.add} onDone={focus} />
        {voice}
      </ChatComposer>
      <DropZone onDrop={pictures.add} />
    </div>
  )
}

export const INPUT_ID = 'message-input'

/** Moves the focus to the message input. */
export function focusComposer(): void {
  document.getElementById(INPUT_ID)?.focus()
}

function takePasted(event: ClipboardEvent): File[] {
  const pasted = picturesIn(event.clipboardData)
  if (pasted.length > 0) event.preventDefault()
  return pasted
}
