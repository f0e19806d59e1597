# fish completion for cframe(1)

complete -c cframe -n __fish_use_subcommand -f -a info -d 'Show what a frame says about itself'
complete -c cframe -n __fish_use_subcommand -f -a cat -d 'Write the plain bytes of a frame'
complete -c cframe -n __fish_use_subcommand -f -a verify -d 'Decode everything and report damage'
complete -c cframe -n __fish_use_subcommand -f -a compact -d 'Write frames anew without dead bytes'
complete -c cframe -n __fish_use_subcommand -f -a repair -d 'Cut off an unfinished commit, or save what can be read'
complete -c cframe -n __fish_use_subcommand -f -a get-meta -d 'Write the content of a metalayer'
complete -c cframe -n __fish_use_subcommand -f -a set-meta -d 'Set or remove a metalayer'
complete -c cframe -n __fish_use_subcommand -f -a pack -d 'Make a frame of a file'
complete -c cframe -n __fish_use_subcommand -f -a unpack -d 'Write the plain bytes of a frame into a file'
complete -c cframe -n __fish_use_subcommand -s V -l version -d 'Print the version'
complete -c cframe -s h -l help -d 'Print the options'

complete -c cframe -n '__fish_seen_subcommand_from info' -l json -d 'As JSON'
complete -c cframe -n '__fish_seen_subcommand_from info' -l all -d 'Read the header of every chunk'
complete -c cframe -n '__fish_seen_subcommand_from info' -x -l offset -d 'Where the frame starts inside the file'

complete -c cframe -n '__fish_seen_subcommand_from cat' -x -l offset -d 'First plain byte'
complete -c cframe -n '__fish_seen_subcommand_from cat' -x -l length -d 'Plain bytes at most'
complete -c cframe -n '__fish_seen_subcommand_from cat' -x -l frame-offset -d 'Where the frame starts inside the file'
complete -c cframe -n '__fish_seen_subcommand_from cat' -x -l b2nd -a 'npy flat chunks' -d 'What an n-d array is written as'
complete -c cframe -n '__fish_seen_subcommand_from cat' -x -l workers -d 'Decoding threads'

complete -c cframe -n '__fish_seen_subcommand_from verify' -l json -d 'Report as JSON'
complete -c cframe -n '__fish_seen_subcommand_from verify' -s q -l quiet -d 'Print only what is faulty'
complete -c cframe -n '__fish_seen_subcommand_from verify' -x -l offset -d 'Where the frame starts inside the file'
complete -c cframe -n '__fish_seen_subcommand_from verify' -x -l workers -d 'Decoding threads'

complete -c cframe -n '__fish_seen_subcommand_from compact' -s q -l quiet -d 'Print only what goes wrong'
complete -c cframe -n '__fish_seen_subcommand_from compact' -x -l wait -d 'How long to wait for a lock'

complete -c cframe -n '__fish_seen_subcommand_from repair' -s q -l quiet -d 'Print only what is lost'
complete -c cframe -n '__fish_seen_subcommand_from repair' -x -l wait -d 'How long to wait for a lock'

complete -c cframe -n '__fish_seen_subcommand_from get-meta' -l fixed -d 'Of the fixed metalayers'
complete -c cframe -n '__fish_seen_subcommand_from get-meta' -l json -d 'Decoded, as JSON'
complete -c cframe -n '__fish_seen_subcommand_from get-meta' -x -l offset -d 'Where the frame starts inside the file'

complete -c cframe -n '__fish_seen_subcommand_from set-meta' -r -l from -d 'Take the content from a file'
complete -c cframe -n '__fish_seen_subcommand_from set-meta' -l remove -d 'Remove it'
complete -c cframe -n '__fish_seen_subcommand_from set-meta' -l fixed -d 'A fixed metalayer'
complete -c cframe -n '__fish_seen_subcommand_from set-meta' -x -l wait -d 'How long to wait for a lock'

complete -c cframe -n '__fish_seen_subcommand_from pack' -x -l codec -a 'blosclz lz4 lz4hc zlib zstd' -d 'Compressor'
complete -c cframe -n '__fish_seen_subcommand_from pack' -x -l clevel -d 'Compression level; 0 stores'
complete -c cframe -n '__fish_seen_subcommand_from pack' -x -l filter -a 'none shuffle bitshuffle delta bytedelta shuffle+bytedelta' -d 'Filters joined with +'
complete -c cframe -n '__fish_seen_subcommand_from pack' -x -l typesize -a auto -d 'Size of an item'
complete -c cframe -n '__fish_seen_subcommand_from pack' -x -l chunksize -a auto -d 'Plain bytes of a chunk'
complete -c cframe -n '__fish_seen_subcommand_from pack' -x -l blocksize -a auto -d 'Plain bytes of a block'
complete -c cframe -n '__fish_seen_subcommand_from pack' -l tune -d 'Try settings on samples'
complete -c cframe -n '__fish_seen_subcommand_from pack' -s f -l force -d 'Replace the frame if it is there'
complete -c cframe -n '__fish_seen_subcommand_from pack' -x -l workers -d 'Encoding threads'

complete -c cframe -n '__fish_seen_subcommand_from unpack' -x -l frame-offset -d 'Where the frame starts inside the file'
complete -c cframe -n '__fish_seen_subcommand_from unpack' -x -l b2nd -a chunks -d 'Write an n-d array as stored'
complete -c cframe -n '__fish_seen_subcommand_from unpack' -s f -l force -d 'Replace the file if it is there'
complete -c cframe -n '__fish_seen_subcommand_from unpack' -x -l workers -d 'Decoding threads'
