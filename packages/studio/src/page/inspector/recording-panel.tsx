import { readRecording, type Recorder } from 'adk-stream-protocol/client'
import { Circle, Download, FolderOpen, Play, Square } from 'lucide-react'
import { type ChangeEvent, useId, useState } from 'react'

import { formatBytes } from './format.ts'
import { useInspectorLabels } from './parts.tsx'

interface RecordingPanelProps {
  readonly recorder: Recorder
  readonly onReplay: (recording: string) => void
}

/** Records the conversation, saves the recording, and replays it or another one. */
export function RecordingPanel({ recorder, onReplay }: RecordingPanelProps) {
  const labels = useInspectorLabels()
  const [isRecording, setRecording] = useState(recorder.isRecording)
  const [recording, setRecorded] = useState(() => recorder.toJsonl())
  const toggle = () => {
    if (isRecording) recorder.stop()
    else recorder.start()
    setRecording(!isRecording)
    setRecorded(recorder.toJsonl())
  }
  return (
    <div className="recording">
      <p>{labels.recordingIntro}</p>
      <button type="button" aria-pressed={isRecording} onClick={toggle}>
        {isRecording ? (
          <Square size={16} aria-hidden="true" />
        ) : (
          <Circle size={16} aria-hidden="true" />
        )}
        {isRecording ? labels.stopRecording : labels.startRecording}
      </button>
      <p role="status">
        {isRecording ? labels.recordingNow : recording && labels.recorded(sizeOf(recording))}
      </p>
      {!isRecording && recording !== '' && (
        <div className="recording-actions">
          <button type="button" onClick={() => save(recording)}>
            <Download size={16} aria-hidden="true" />
            {labels.download}
          </button>
          <button type="button" onClick={() => onReplay(recording)}>
            <Play size={16} aria-hidden="true" />
            {labels.play}
          </button>
        </div>
      )}
      <OpenFile onReplay={onReplay} />
    </div>
  )
}

function OpenFile({ onReplay }: Pick<RecordingPanelProps, 'onReplay'>) {
  const labels = useInspectorLabels()
  const [isBroken, setBroken] = useState(false)
  const id = useId()
  const open = async ({ target }: ChangeEvent<HTMLInputElement>) => {
    const file = target.files?.[0]
    // Allows the same file to be chosen again.
    target.value = ''
    if (!file) return
    try {
      const text = await file.text()
      readRecording(text)
      setBroken(false)
      onReplay(text)
    } catch {
      setBroken(true)
    }
  }
  return (
    <>
      <label className="file-button" htmlFor={id}>
        <FolderOpen size={16} aria-hidden="true" />
        {labels.openFile}
      </label>
      <input
        id={id}
        type="file"
        accept=".jsonl,application/jsonl"
        className="visually-hidden"
        onChange={(event) => void open(event)}
      />
      {isBroken && <p role="alert">{labels.brokenFile}</p>}
    </>
  )
}

function sizeOf(text: string): string {
  return formatBytes(new Blob([text]).size)
}

function save(recording: string): void {
  const address = URL.createObjectURL(new Blob([recording], { type: 'application/jsonl' }))
  const link = document.createElement('a')
  link.href = address
  link.download = `conversation-${new Date().toISOString().slice(0, 19).replaceAll(':', '-')}.jsonl`
  link.click()
  // The download has started by then.
  setTimeout(() => URL.revokeObjectURL(address), 1000)
}
