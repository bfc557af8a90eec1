import { Composer as ChatComposer } from 'adk-stream-protocol/react'
import { ArrowUp, Square, X, ImagePlus } from 'lucide-react'
import {
  type ClipboardEvent,
  type ComponentProps,
  type ComponentRef,
  type ReactNode,
  type RefObject,
  useImperativeHandle,
  useRef,
  useEffect,
  useEffectEvent,
  useState,
  type KeyboardEvent,
} from 'react'

import { IconButton } from '../icon-button.tsx'
import {
  picturesIn,
  usePictures,
  type PictureProblem,
  type Picture,
  PICTURE_TYPES,
} from './pictures.ts'
import { useLabels } from '../i18n/language.tsx'
import type { Labels } from '../i18n/labels.ts'

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

interface PreviewsProps {
  readonly pictures: readonly Picture[]
  readonly onRemove: (id: string) => void
}

/** The pictures of the draft. */
function Previews({ pictures, onRemove }: PreviewsProps) {
  const { composer } = useLabels().shell
  if (pictures.length === 0) return null
  return (
    <ul className="previews" aria-label={composer.pictures}>
      {pictures.map(({ id, name, url }) => (
        <li key={id} className="preview">
          <img src={url} alt={name} />
          <button
            type="button"
            className="preview-remove"
            aria-label={composer.remove(name)}
            title={composer.remove(name)}
            onClick={() => onRemove(id)}
          >
            <X aria-hidden="true" />
          </button>
        </li>
      ))}
    </ul>
  )
}

/** Shows why pictures were rejected. */
function PictureProblems({ problems }: { readonly problems: readonly PictureProblem[] }) {
  const labels = useLabels()
  if (problems.length === 0) return null
  return (
    <div className="composer-problems" role="alert">
      {[...new Set(problems.map((problem) => describe(problem, labels)))].map((sentence) => (
        <p key={sentence}>{sentence}</p>
      ))}
    </div>
  )
}

function describe(problem: PictureProblem, { shell }: Labels): string {
  const { problems } = shell.composer
  switch (problem.kind) {
    case 'type':
      return problems.type(problem.name)
    case 'size':
      return problems.size(problem.name, problem.maxMegabytes)
    case 'total':
      return problems.total(problem.name)
    case 'count':
      return problems.count(problem.max)
    case 'unreadable':
      return problems.unreadable(problem.name)
  }
}

interface PictureButtonProps {
  readonly chooserRef: RefObject<HTMLInputElement | null>
  readonly onChoose: (files: File[]) => void
  readonly onDone: () => void
}

/** Opens the file picker for pictures. */
function PictureButton({ chooserRef, onChoose, onDone }: PictureButtonProps) {
  const { attach } = useLabels().shell.composer
  return (
    <>
      <IconButton icon={ImagePlus} label={attach} onClick={() => chooserRef.current?.click()} />
      <input
        ref={chooserRef}
        type="file"
        accept={PICTURE_TYPES.join(',')}
        multiple
        hidden
        aria-label={attach}
        onChange={(event) => {
          onChoose([...(event.target.files ?? [])])
          // Allows the same picture to be chosen again after it was removed.
          event.target.value = ''
          onDone()
        }}
      />
    </>
  )
}

/** Accepts files that are dropped anywhere on the page, and shows an overlay while they are dragged over it. */
function DropZone({ onDrop }: { readonly onDrop: (files: File[]) => void }) {
  const { composer } = useLabels().shell
  const [held, setHeld] = useState(false)
  const take = useEffectEvent(onDrop)
  useEffect(() => {
    const over = (event: DragEvent) => {
      if (!event.dataTransfer?.types.includes('Files')) return
      // Without this, the browser would navigate to the file.
      event.preventDefault()
      setHeld(true)
    }
    const leave = (event: DragEvent) => {
      if (event.relatedTarget === null) setHeld(false)
    }
    const drop = (event: DragEvent) => {
      setHeld(false)
      const files = [...(event.dataTransfer?.files ?? [])]
      if (files.length === 0) return
      event.preventDefault()
      take(files)
    }
    document.addEventListener('dragover', over)
    document.addEventListener('dragleave', leave)
    document.addEventListener('drop', drop)
    return () => {
      document.removeEventListener('dragover', over)
      document.removeEventListener('dragleave', leave)
      document.removeEventListener('drop', drop)
    }
  }, [])
  if (!held) return null
  return (
    <div className="drop-zone">
      <p>
        <ImagePlus aria-hidden="true" />
        {composer.drop}
      </p>
    </div>
  )
}

/** Returns whether an input method handles this key. Enter then accepts the Japanese text and must not send the message. */
export function isComposing(event: KeyboardEvent): boolean {
  // Safari ends the composition before it reports the key. Only the key code 229 shows it.
  // oxlint-disable-next-line typescript/no-deprecated
  return event.nativeEvent.isComposing || event.keyCode === 229
}
